"""Results within a length: what is cut says so, nothing is broken, and what fits is untouched."""

from __future__ import annotations

import copy
import json
from typing import Any

import mcp_types as t
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.gateways import client, gateway, odd, run, said
from toolfold.runtime import Registry
from toolfold.serve.mcp._bounded_results import (
    bounded_contents,
    bounded_messages,
    bounded_result,
)

TEXTS = st.text(max_size=300)
BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda x: {"type": "text", "text": x}, TEXTS),
        st.builds(lambda x: {"type": "text", "text": x, "annotations": {"a": x}}, TEXTS),
        st.builds(lambda x: {"type": "image", "mimeType": "image/png", "data": x}, TEXTS),
        st.builds(lambda x: {"type": "resource_link", "name": x, "uri": "a:b"}, TEXTS),
        st.builds(lambda x: {"type": "resource", "resource": {"uri": "a:b", "text": x}}, TEXTS),
        st.builds(lambda x: {"type": "resource", "resource": {"uri": "a:b", "blob": x}}, TEXTS),
        st.builds(lambda x: {"type": "strange", "x": [x]}, TEXTS),
        st.builds(lambda n: {"type": "strange", "x": 10**n}, st.integers(0, 400)),
    ),
    max_size=30,
)
RESULTS = st.builds(
    lambda blocks, inner, more: {"content": blocks, **inner, **more},
    BLOCKS,
    st.one_of(
        st.just({}), st.builds(lambda x: {"structuredContent": {"x": x, "n": 10**30}}, TEXTS)
    ),
    st.one_of(st.just({}), st.builds(lambda x: {"_meta": {"x": x}, "isError": True}, TEXTS)),
)
NOTES = 1_500
"""What all notes of one result come to, at most."""


def length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


@given(RESULTS, st.integers(1, 500))
def test_whatever_comes_is_short_whole_json_and_no_worse_than_it_was(
    result: dict[str, Any], limit: int
) -> None:
    before = copy.deepcopy(result)
    made = bounded_result(result, limit)

    assert result == before
    structured = made.get("structuredContent")
    assert structured in (None, result.get("structuredContent"))
    assert structured is None or length(structured) <= limit
    content = sum(
        len(block["text"]) if block.get("type") == "text" else length(block)
        for block in made["content"]
    )
    assert content <= limit + NOTES
    assert json.loads(json.dumps(made)) == made
    assert made.get("isError") == result.get("isError")
    if made != result:
        notes = [b["text"] for b in made["content"] if b.get("type") == "text"]
        is_meta = "_meta" in result and "_meta" not in made
        assert is_meta or any("Cut:" in n or "eft out" in n for n in notes)


@given(RESULTS)
def test_without_a_limit_or_within_it_the_very_result_goes_out(result: dict[str, Any]) -> None:
    assert bounded_result(result, 0) is result
    assert bounded_result(result, 10_000_000) is result


def test_a_text_is_cut_at_a_character_and_says_how_much_there_was() -> None:
    made = bounded_result({"content": [{"type": "text", "text": "é" * 1_000}]}, 100)

    (block,) = made["content"]
    assert block["text"].startswith("é" * 100 + "\n(Cut: the first 100 of 1,000 characters.")


def test_a_text_that_fits_is_whole_though_its_annotations_do_not() -> None:
    annotated = {"type": "text", "text": "hi", "annotations": {"audience": ["user"] * 20}}
    picture = {"type": "image", "data": "A" * 400, "mimeType": "image/png"}

    made = bounded_result({"content": [annotated, picture]}, 40)

    assert made["content"][0] == {"type": "text", "text": "hi"}


def test_many_blocks_that_do_not_fit_are_counted() -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "A" * 4_000}
    made = bounded_result({"content": [{"type": "text", "text": "one"}, *[image] * 50]}, 1_000)

    texts = [block["text"] for block in made["content"]]
    assert texts[0] == "one"
    assert texts[1] == "[image/png, 3 kB: left out, it is too long. Ask for less.]"
    assert texts[-1] == "(42 more left out. Ask for less, or for a part.)"
    assert len(texts) == 10


def test_a_resource_that_is_cut_is_plain_text_and_no_longer_json() -> None:
    parts = [
        {"uri": "a:1", "mimeType": "application/json", "text": json.dumps(list(range(500)))},
        {"uri": "a:2", "mimeType": "image/png", "blob": "A" * 4_000},
        {"uri": "a:3", "text": ""},
    ]
    made = bounded_contents({"contents": parts, "_meta": {}}, 300)["contents"]

    assert [part["uri"] for part in made] == ["a:1", "a:2", "a:3"]
    assert (made[0]["mimeType"], made[1]["mimeType"]) == ("text/plain", "text/plain")
    assert "(Cut: the first 300 of" in made[0]["text"]
    assert "image/png" in made[1]["text"]
    assert "blob" not in made[1]


def test_a_prompt_keeps_its_messages_and_their_roles() -> None:
    messages = [
        {"role": "user", "content": {"type": "text", "text": "a" * 1_000}},
        {"role": "assistant", "content": {"type": "text", "text": "b"}},
    ]
    made = bounded_messages({"messages": messages}, 100)["messages"]

    assert [message["role"] for message in made] == ["user", "assistant"]
    assert "(Cut: the first 100 of 1,000" in made[0]["content"]["text"]
    assert "(Cut: the first 0 of 1" in made[1]["content"]["text"]


def tables() -> Any:
    registry = Registry()

    @registry.tool
    def rows(n: int) -> dict[str, list[int]]:
        """Return rows."""
        return {"rows": list(range(n))}

    return registry.prefixed("own")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_call_within_the_limit_is_as_without_one_and_a_longer_one_says_so(mode: str) -> None:
    async def main() -> None:
        async with (
            gateway(sources=[tables()], serve={"result_limit": 500}) as made,
            client(made, mode) as c,
        ):
            short = await c.call_tool("own__rows", {"n": 3})
            assert short.structured_content == {"rows": [0, 1, 2]}
            long = await c.call_tool("own__rows", {"n": 10_000})
            assert long.structured_content is None
            assert "(Cut: the first 500 of" in said(long)
            assert isinstance(long.content[-1], t.TextContent)
            assert long.content[-1].text.startswith("(Left out: the structured content, ")

    run(main)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_servers_have_a_limit_of_their_own_and_clients_take_what_is_cut(mode: str) -> None:
    async def main() -> None:
        servers = (odd("one"), odd("two", result_limit=0), odd("three", result_limit=20))
        async with (
            gateway(*servers, serve={"result_limit": 100}) as made,
            client(made, mode) as c,
        ):
            text = "x" * 400
            assert len(said(await c.call_tool("one__echo", {"x": text}))) < 250
            assert said(await c.call_tool("two__echo", {"x": text})) == f"two:{text}"
            rich = await c.call_tool("three__rich", {})  # its list promises structured content
            assert rich.is_error
            assert rich.structured_content is None
            read = await c.read_resource("odd:///three:")
            assert isinstance(read.contents[0], t.TextResourceContents)
            assert "(Cut: the first 20 of" in read.contents[0].text
            prompt = await c.get_prompt("three__greet", {"who": "y" * 50})
            assert "(Cut: the first 20 of" in str(prompt.messages[0].content)

    run(main, 60)
