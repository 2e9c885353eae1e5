"""What strangers send: it passes as it came, or is refused in the client's own words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.proxying import DIALECTS, Call, Say, named
from toolfold import Settings
from toolfold.proxy.exchange import Refused, Untouched
from toolfold.proxy.opening import open_exchange
from toolfold.scope import EVERYTHING, Scope
from toolfold.store.entries import MemoryEntries

FOLDING = Settings(enabled="on")
NAMES: list[Any] = list(DIALECTS)
READERS = Scope(("*read*",))


def opened(dialect: Any, body: bytes, scope: Scope = EVERYTHING) -> Any:
    return open_exchange(dialect, body, {}, settings=FOLDING, store=MemoryEntries(), scope=scope)


def request(dialect: str, tools: Any = None, **more: Any) -> dict[str, Any]:
    key = "input" if dialect == "openai-responses" else "messages"
    tools = [named(dialect, f"mcp__a__t{n}") for n in range(4)] if tools is None else tools
    return {"model": "m", key: [{"role": "user", "content": "hi"}], "tools": tools, **more}


BODIES = [
    b"",
    b"not json",
    b"[]",
    b"null",
    b'"text"',
    b"{",
    b'{"model": "m", "tools": [}',
    b'\xef\xbb\xbf{"model": "m", "messages": [], "tools": []}',
    b'{"model": "m\xff"}',
    b'{"tools": [], "tools": []}',
    b'{"messages": 1, "input": 1, "tools": {"a": 1}}',
    b'{"messages": [1, null], "input": [[]], "tools": [1]}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"messages": [{"role": "user", "content": "a"}], "input": [{}], "tools": '
    + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"n": ' + b"9" * 10_000 + b"}",
    b"\0" * 10,
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
@pytest.mark.parametrize("dialect", NAMES)
def test_a_body_that_cannot_be_read_passes_as_it_came(dialect: Any, body: bytes) -> None:
    came = opened(dialect, body)
    assert isinstance(came, Untouched)
    assert came.body is body


@pytest.mark.parametrize("body", BODIES[:7] + BODIES[10:12])
@pytest.mark.parametrize("dialect", NAMES)
def test_with_a_scope_it_is_refused_in_the_clients_dialect(dialect: Any, body: bytes) -> None:
    came = opened(dialect, body, READERS)
    if isinstance(came, Untouched):  # nothing in it that could be called
        assert not json.loads(body).get("tools")
        return
    assert isinstance(came, Refused)
    assert came.status == 400
    assert isinstance(json.loads(came.body)["error"]["message"], str)


NO_TOOLS: list[Any] = [
    [1, "two", None],
    [{}],
    [{"name": ""}],
    [{"name": 5, "input_schema": {}, "function": {"name": 5}, "type": "function"}],
    [{"function": {"name": "a"}}, {"function": {"name": "a"}}],
    [{"type": "function", "function": {"name": "x", "parameters": "no"}}],
    [{"name": "x", "input_schema": []}],
    [{"type": "function", "name": "x" * 10_000, "parameters": {}}],
]


@pytest.mark.parametrize("tools", NO_TOOLS, ids=range(len(NO_TOOLS)))
@pytest.mark.parametrize("dialect", NAMES)
def test_tools_that_are_no_tools_pass_as_they_came(dialect: Any, tools: Any) -> None:
    body = json.dumps(request(dialect, tools)).encode()
    came = opened(dialect, body)
    assert isinstance(came, Untouched)
    assert came.body is body


@pytest.mark.parametrize("dialect", NAMES)
def test_four_megabytes_of_tools_are_folded(dialect: Any) -> None:
    tools = [named(dialect, f"mcp__a__t{n}", f"Does {n}. " + "x" * 4_000) for n in range(1_000)]
    came = opened(dialect, json.dumps(request(dialect, tools)).encode())
    assert len(came.body) < 100_000


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        '"\\ud800 alone"',
        "NaN",
        "123456789012345678901234567890",
        "1e999",
        '{"a":1,"a":2}',
        "[[[]]]",
    ],
)
def test_odd_values_beside_the_tools_go_on_to_the_byte(dialect: Any, text: str) -> None:
    whole = json.dumps(request(dialect))
    body = whole.replace('"hi"', text).replace("{", '{ "odd" :\t' + text + " ,\n", 1).encode()
    came = opened(dialect, body)
    at = body.index(b'"tools": [')
    assert came.body[:at] == body[:at]
    assert came.body.endswith(b"]}")
    assert len(json.loads(came.body)["tools"]) == 3


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>no</html>",
        b"null",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"content": 1}',
        b"\xff",
    ],
)
def test_an_answer_that_is_none_comes_back_as_it_came(dialect: Any, answer: bytes) -> None:
    came = opened(dialect, json.dumps(request(dialect)).encode())
    assert came.end(answer).tail == answer


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize(
    "stream",
    [
        b"data: nonsense\n\n",
        b'event: error\ndata: {"type": "error", "error": {"message": "busy"}}\n\n',
        b'data: {"error": {"message": "busy"}}\n\n',
        b"data: [1, 2]\n\n",
        b"data: null\n\n",
    ],
)
def test_an_error_in_mid_stream_arrives_as_it_is(dialect: Any, stream: bytes) -> None:
    came = opened(dialect, json.dumps(request(dialect, stream=True)).encode())
    out = came.receive(stream) + came.end().tail
    assert stream.partition(b"data: ")[2].strip() in out


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize(
    "data",
    [b"<html><p>no</html>", b'{"error": {"message": "no"}}', b"\x1f\x8b\x08\x00", b": hm\n\n"],
)
def test_a_stream_of_no_events_comes_back_as_it_came(dialect: Any, data: bytes) -> None:
    came = opened(dialect, json.dumps(request(dialect, stream=True)).encode())
    out = came.receive(data[:5]) + came.receive(data[5:])
    assert out + came.end().tail == data


@pytest.mark.parametrize("dialect", NAMES)
def test_a_stream_without_an_end_leaks_no_call_of_ours(dialect: Any) -> None:
    came = opened(dialect, json.dumps(request(dialect, stream=True)).encode())
    wire = DIALECTS[dialect]
    asked = wire.read("/", {}, came.body)
    sent = list(wire.streamed(asked, [Say("Hm."), Call("tool_search", {"query": "x"})], 1))
    end = next(i for i, piece in enumerate(sent) if b"tool_search" in piece)
    out = b"".join(map(came.receive, sent[: end + 1])) + came.end().tail
    assert b"tool_search" not in out
    assert b"broke off" in out


@pytest.mark.parametrize("dialect", NAMES)
def test_an_answer_in_one_piece_where_a_stream_was_asked_for_is_read_all_the_same(
    dialect: Any,
) -> None:
    came = opened(dialect, json.dumps(request(dialect, stream=True)).encode())
    wire = DIALECTS[dialect]
    asked = wire.read("/", {}, came.body)
    again = came.end(
        json.dumps(wire.whole(asked, [Call("tool_search", {"query": "x"})], 1)).encode()
    )
    last = came.end(json.dumps(wire.whole(asked, [Say("Done.")], 2)).encode())
    assert b"tool_search" in again.body
    assert b"Done." in last.tail
    assert isinstance(json.loads(last.tail), dict)


@pytest.mark.parametrize("dialect", NAMES)
@given(data=st.binary(max_size=300))
def test_no_bytes_of_an_upstream_raise(dialect: Any, data: bytes) -> None:
    whole = opened(dialect, json.dumps(request(dialect)).encode())
    assert whole.end(data).tail == data
    streamed = opened(dialect, json.dumps(request(dialect, stream=True)).encode())
    streamed.receive(data)
    streamed.end()
    pieces = opened(dialect, json.dumps(request(dialect, stream=True)).encode())
    assert pieces.end(data).tail == data


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
_key = st.sampled_from(
    ["model", "messages", "input", "tools", "stream", "tool_choice", "store", "n",
     "role", "content", "type", "name", "namespace", "function", "input_schema", "parameters"]
)  # fmt: skip
_odd = st.recursive(
    _json | st.sampled_from(["user", "assistant", "function", "namespace", "tool_use"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_key, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize("dialect", NAMES)
@given(body=st.dictionaries(_key, _odd))
def test_no_request_raises(dialect: Any, body: Any) -> None:
    for scope in (EVERYTHING, READERS):
        came = opened(dialect, json.dumps(body).encode(), scope)
        assert came is not None


@pytest.mark.parametrize("dialect", NAMES)
@given(event=st.dictionaries(_key | st.sampled_from(["choices", "delta", "index", "item"]), _odd))
def test_no_event_raises(dialect: Any, event: Any) -> None:
    came = opened(dialect, json.dumps(request(dialect, stream=True)).encode())
    came.receive(f"data: {json.dumps(event)}\n\n".encode())
    came.end()
    whole = opened(dialect, json.dumps(request(dialect)).encode())
    whole.end(json.dumps(event).encode())
