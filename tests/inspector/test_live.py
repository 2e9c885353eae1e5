"""Gateways that run, in the inspector: what is told of them, and who may have them do something."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from support.inspecting import OWN, Reply, ask
from toolfold.demo import demo_catalog
from toolfold.inspector.live import CHANGES, NotRunningError, tools_of_running
from toolfold.serve.control.control_socket import ControlSocket, Verb
from toolfold.serve.control.messages import ControlError
from toolfold.tool import Json
from toolfold.wire import write

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="running gateways are asked over unix sockets"
)

STATUS = {"transport": "http", "since": "2026-11-16T10:00:00Z", "servers": []}


def saying(result: Any) -> Verb:
    """A verb that always answers the same."""

    async def answer(arguments: Mapping[str, Json]) -> Json:
        return result

    return answer


@contextmanager
def answering(state: Path, verbs: Mapping[str, Verb]) -> Iterator[None]:
    """Answer on a control socket of a state folder, as a gateway does."""
    opened, over = Event(), Event()

    async def serve() -> None:
        async with ControlSocket(state, {"status": saying(STATUS), **verbs}):
            opened.set()
            await asyncio.to_thread(over.wait)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert opened.wait(10)
    try:
        yield
    finally:
        over.set()
        thread.join(10)


def change(
    state: Path,
    verb: str = "servers.restart",
    *,
    kind: str | None = "application/json",
    origin: str | None = OWN,
    body: bytes | None = None,
    **more: Any,
) -> Reply:
    """Ask for a change as the page does."""
    value = {"pid": os.getpid(), "verb": verb, "arguments": {"name": "forge"}}
    sent = json.dumps(value).encode() if body is None else body
    return ask(
        "/api/live/change",
        method="POST",
        states=[state],
        kind=kind,
        origin=origin,
        body=sent,
        **more,
    )


def test_what_runs_is_told_with_its_last_calls(tmp_path: Path) -> None:
    doing = {"number": 1, "under_way": [], "calls": [{"tool": "a"}], "empty_searches": []}

    with answering(tmp_path, {"activity": saying(doing)}):
        (own,) = ask("/api/live", states=[tmp_path]).value["running"]

    assert own == {**STATUS, "pid": os.getpid(), "error": None, "activity": doing}


def test_a_proxy_which_tells_no_calls_is_shown_all_the_same(tmp_path: Path) -> None:
    with answering(tmp_path, {}):
        (own,) = ask("/api/live", states=[tmp_path]).value["running"]

    assert (own["activity"], own["error"]) == (None, None)


def test_a_change_is_handed_on_and_its_answer_comes_back(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def restart(arguments: Mapping[str, Json]) -> Json:
        seen.append(dict(arguments))
        return {"name": "forge", "state": "starting"}

    with answering(tmp_path, {"servers.restart": restart}):
        reply = change(tmp_path)

    assert (reply.status, reply.value) == (200, {"name": "forge", "state": "starting"})
    assert seen == [{"name": "forge"}]


def test_a_refusal_says_why(tmp_path: Path) -> None:
    async def approve(arguments: Mapping[str, Json]) -> Json:
        raise ControlError("changed", "something else waits by now: look again")

    with answering(tmp_path, {"trust.approve": approve}):
        reply = change(tmp_path, "trust.approve")

    assert (reply.status, reply.value) == (
        409,
        {"error": "something else waits by now: look again"},
    )


@pytest.mark.parametrize("verb", ["status", "tools", "stop", "servers.logs", ""])
def test_the_page_may_ask_for_no_other_change(tmp_path: Path, verb: str) -> None:
    with answering(tmp_path, {"stop": saying("stopped"), "tools": saying({})}):
        assert change(tmp_path, verb).status == 409

    assert verb not in CHANGES


@pytest.mark.parametrize(
    ("status", "more"),
    [
        (401, {"token": None}),
        (401, {"token": "another-token-of-some-length"}),
        (403, {"origin": "https://evil.example"}),
        (403, {"origin": "http://127.0.0.1:9999"}),
        (403, {"origin": None}),
        (421, {"host": "evil.example"}),
        (415, {"kind": "text/plain"}),
        (415, {"kind": "application/x-www-form-urlencoded"}),
        (415, {"kind": None}),
        (400, {"body": b""}),
        (400, {"body": b"[]"}),
        (400, {"body": b'{"pid": "1", "verb": "servers.restart", "arguments": {}}'}),
        (400, {"body": b'{"pid": 1, "verb": "servers.restart", "arguments": []}'}),
        (400, {"body": b"[" * 100_000}),
    ],
)
def test_nobody_else_and_nothing_else_changes_anything(
    tmp_path: Path, status: int, more: dict[str, Any]
) -> None:
    seen: list[Any] = []

    async def restart(arguments: Mapping[str, Json]) -> Json:
        seen.append(arguments)
        return {}

    with answering(tmp_path, {"servers.restart": restart}):
        assert change(tmp_path, **more).status == status

    assert seen == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_a_change_is_no_other_method(tmp_path: Path, method: str) -> None:
    reply = ask("/api/live/change", method=method, states=[tmp_path], origin=OWN)

    assert reply.status in (404, 405)


def test_what_does_not_run_cannot_be_asked(tmp_path: Path) -> None:
    body = b'{"pid": 1, "verb": "servers.restart", "arguments": {}}'

    assert change(tmp_path, body=body).value == {"error": "no gateway with the number 1 runs"}
    assert ask("/api/live/trust", states=[tmp_path], pid=1).status == 400
    assert ask("/api/live/log", states=[tmp_path], pid=1, name="forge").status == 400


def test_what_waits_and_what_a_server_wrote_are_told(tmp_path: Path) -> None:
    pending = {"mode": "changes", "count": 0, "servers": []}
    log = {"name": "forge", "state": "ready", "error": None, "lines": []}

    with answering(tmp_path, {"trust.pending": saying(pending), "servers.logs": saying(log)}):
        waits = ask("/api/live/trust", states=[tmp_path], pid=os.getpid()).value
        wrote = ask("/api/live/log", states=[tmp_path], pid=os.getpid(), name="forge").value

    assert (waits, wrote) == (pending, log)


def test_the_tools_of_the_running_gateway_are_a_catalog(tmp_path: Path) -> None:
    tools = [write(tool, "plain") for tool in demo_catalog()]

    async def some(arguments: Mapping[str, Json]) -> Json:
        offset = arguments["offset"]
        return {"count": len(tools), "tools": tools[offset : offset + 50]}

    with answering(tmp_path, {"tools": some}):
        found, title = tools_of_running([tmp_path])

    assert found.names == demo_catalog().names
    assert found["forge__create_issue"].source == "forge"
    assert title == f"gateway {os.getpid()}"


def test_where_no_gateway_runs_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError, match="no gateway of yours runs"):
        tools_of_running([tmp_path])
