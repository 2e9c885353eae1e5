"""The control socket: what can be said on it, and what it does not let be done to it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.running import wait
from toolfold.serve.control import control_socket
from toolfold.serve.control.control_socket import ControlSocket
from toolfold.serve.control.messages import ControlError, Question, read_answer, read_question
from toolfold.serve.control.run_folder import RunFolder, address_of
from toolfold.tool import Json

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _echo(arguments: Mapping[str, Json]) -> Json:
    return {"said": dict(arguments)}


async def _fails(arguments: Mapping[str, Json]) -> Json:
    raise RuntimeError("password=hunter2hunter2")


def opened(
    state: Path, talk: Callable[[Callable[[], Awaitable[Streams]]], Awaitable[None]]
) -> None:
    async def main() -> None:
        async with ControlSocket(state, {"echo": _echo, "fails": _fails}) as socket:
            assert socket.place is not None
            address = address_of(socket.place)
            await talk(lambda: asyncio.open_unix_connection(address))

    wait(main(), 30)


async def asked(streams: Streams, line: bytes) -> dict[str, Any]:
    reader, writer = streams
    writer.write(line)
    await writer.drain()
    return json.loads(await reader.readline())


def test_several_requests_are_answered_on_one_connection(tmp_path: Path) -> None:
    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        streams = await connect()
        for number in range(3):
            answer = await asked(streams, Question("echo", {"n": number}).line())
            assert answer == {"toolfold": 1, "ok": True, "result": {"said": {"n": number}}}
        streams[1].close()

    opened(tmp_path, talk)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{}", "version"),
        (b'{"toolfold": 2, "verb": "echo"}', "version"),
        (b'{"toolfold": 1}', "bad_request"),
        (b'{"toolfold": 1, "verb": "echo", "arguments": []}', "bad_request"),
        (b'{"toolfold": 1, "verb": "restart"}', "unknown_verb"),
        (b'{"toolfold": 1, "verb": "fails"}', "failed"),
        (b"GET / HTTP/1.1", "bad_request"),
        (b"[" * 5000, "bad_request"),
        (b"\xff\xfe", "bad_request"),
        (b"", "bad_request"),
    ],
)
def test_what_is_no_request_is_refused_with_a_code_and_the_next_one_is_answered(
    tmp_path: Path, line: bytes, code: str
) -> None:
    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        streams = await connect()
        refused = await asked(streams, line + b"\n")
        assert refused["ok"] is False
        assert refused["error"]["code"] == code
        assert "hunter2" not in json.dumps(refused)
        assert (await asked(streams, Question("echo").line()))["ok"] is True
        streams[1].close()

    opened(tmp_path, talk)


def test_a_request_without_an_end_is_refused_and_the_connection_closed(tmp_path: Path) -> None:
    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        reader, writer = await connect()
        writer.write(b"x" * (3 * control_socket.REQUEST_LIMIT))
        answer = json.loads(await reader.readline())
        assert answer["error"]["message"] == "the request is too long"
        writer.close()

    opened(tmp_path, talk)


def test_many_idle_connections_do_not_keep_others_out_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_socket, "PATIENCE", 0.2)

    async def talk(connect: Callable[[], Awaitable[Streams]]) -> None:
        idle = [await connect() for _ in range(40)]
        for reader, _ in idle:
            assert await reader.read() == b""
        streams = await connect()
        assert (await asked(streams, Question("echo").line()))["ok"] is True
        for _, writer in (*idle, streams):
            writer.close()

    opened(tmp_path, talk)


def test_an_end_closes_what_is_open_and_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with ControlSocket(tmp_path, {"echo": _echo}) as socket:
            assert socket.place is not None
            reader, writer = await asyncio.open_unix_connection(address_of(socket.place))
            writer.write(Question("echo").line())
            await reader.readline()
        assert await reader.read() == b""
        writer.close()
        assert RunFolder(tmp_path).places() == []

    wait(main(), 10)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_folder_that_is_none_of_ours_costs_the_socket_and_not_the_gateway(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    state.mkdir()
    elsewhere.mkdir()
    if kind == "file":
        (state / "run").write_text("", "utf-8")
    else:
        (state / "run").symlink_to(elsewhere)

    async def main() -> None:
        async with ControlSocket(state, {}) as socket:
            assert socket.place is None

    with caplog.at_level(logging.WARNING):
        wait(main(), 10)

    assert "`toolfold status` will not show this gateway" in caplog.text
    assert list(elsewhere.iterdir()) == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.text(), st.dictionaries(st.text(), _JSON))
def test_a_question_is_read_as_it_was_asked(verb: str, arguments: dict[str, Any]) -> None:
    line = Question(verb, arguments).line()

    assert line.count(b"\n") == 1
    assert read_question(line) == (verb, arguments)


@given(st.binary(max_size=200))
def test_no_line_is_taken_for_an_answer_that_is_none(line: bytes) -> None:
    for read in (read_question, read_answer):
        with pytest.raises(ControlError):
            read(line)
