"""Streams of older revisions over HTTP that a client takes up again; what it is checked against."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp.server.streamable_http import EventMessage
from mcp_types import JSONRPCResponse

from support.gateways import gateway, odd, run, until
from support.servers.polled import Polled
from support.servers.twins import scoped, tool
from toolfold.serve.gateway import Gateway
from toolfold.serve.http.app import make_app
from toolfold.serve.http.events import (
    EVENTS_AT_MOST,
    EventRoom,
    RequestStreams,
    SessionEvents,
)
from toolfold.sources.mcp.server import Server

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

OLD, NEW = "2025-11-25", "2026-07-28"
ACCEPT = {"Accept": "application/json, text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@asynccontextmanager
async def listening(made: Gateway) -> AsyncIterator[httpx2.AsyncClient]:
    """The gateway over HTTP; yields a client of it."""
    app = make_app(made, "127.0.0.1", metrics=lambda: "")
    async with (
        serving(app) as url,
        httpx2.AsyncClient(base_url=url, headers=ACCEPT, timeout=20) as http,
    ):
        yield http


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """An application over HTTP; yields its address."""
    config = uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())  # pyright: ignore[reportPrivateUsage]
    await until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


def events(text: str) -> list[dict[str, str]]:
    """The events of a stream, each with its fields."""
    blocks = [block for block in text.replace("\r\n", "\n").split("\n\n") if block.strip()]
    return [dict(line.split(": ", 1) for line in b.splitlines() if ": " in line) for b in blocks]


async def session(http: httpx2.AsyncClient, revision: str = OLD) -> dict[str, str]:
    """Open a session; return the headers of its requests."""
    params = {
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    opened = await http.post("/mcp", json=body)
    headers = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": revision}
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await http.post("/mcp", json=done, headers=headers)
    return headers


def call(name: str, number: int = 7, /, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


async def first_id(http: httpx2.AsyncClient, headers: dict[str, str], body: Any) -> str:
    """Send a call, read the event that opens its stream, and break the connection."""
    async with http.stream("POST", "/mcp", json=body, headers=headers) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                return line.removeprefix("id: ")
    raise AssertionError("no event had an id")


async def rest(http: httpx2.AsyncClient, headers: dict[str, str], last: str) -> list[Any]:
    """Come back for what followed an event; return its messages up to the call's answer."""
    found: list[Any] = []
    more = {**headers, "last-event-id": last}
    async with http.stream("GET", "/mcp", headers=more) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line.removeprefix("data: ")))
                if found[-1].get("id") == 7:
                    return found
    return found


def test_a_stream_begins_with_an_event_to_come_back_to() -> None:
    async def main() -> None:
        async with gateway(odd("one")) as made, listening(made) as http:
            headers = await session(http)
            answer = await http.post("/mcp", json=call("one__echo", x="hi"), headers=headers)
            opening, result = events(answer.text)
            assert opening["data"] == ""
            assert opening["retry"] == "1000"
            assert json.loads(result["data"])["result"]["content"][0]["text"] == "one:hi"
            assert int(result["id"]) > int(opening["id"])

    run(main)


def test_a_client_that_lost_its_connection_gets_the_answer_when_it_comes_back() -> None:
    async def main() -> None:
        async with gateway(odd("one")) as made, listening(made) as http:
            headers = await session(http)
            last = await first_id(http, headers, call("one__slow", x="0.3"))
            found = await rest(http, headers, last)
            assert found[-1]["id"] == 7

    run(main)


def test_an_event_means_nothing_in_another_session() -> None:
    async def main() -> None:
        async with gateway(odd("one")) as made, listening(made) as http:
            mine, theirs = await session(http), await session(http)
            await http.post("/mcp", json=call("one__echo", x="secret"), headers=theirs)
            for number in range(1, 6):
                more = {**mine, "last-event-id": str(number)}
                lines: list[str] = []
                with suppress(TimeoutError):
                    async with (
                        asyncio.timeout(0.3),
                        http.stream("GET", "/mcp", headers=more) as answer,
                    ):
                        async for line in answer.aiter_lines():
                            lines += [line]
                assert "secret" not in "".join(lines)

    run(main)


def message(number: int, size: int = 10) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=number, result={"text": "x" * size})


def test_what_is_kept_is_bounded_for_a_session_and_for_all_together() -> None:
    async def main() -> None:
        room = EventRoom(limit=200_000)
        one, other = SessionEvents(room), SessionEvents(room)
        last = ""
        for number in range(3 * EVENTS_AT_MOST):
            last = await one.store_event("1", message(number))
        kept = [n for n in range(3 * EVENTS_AT_MOST + 1) if n in one]
        assert len(kept) == EVENTS_AT_MOST
        assert str(kept[-1]) == last
        for number in range(50):
            await other.store_event("1", message(number, 20_000))
        assert room.size <= 200_000
        assert not any(n in one for n in kept)
        one.close()
        other.close()
        assert room.size == 0

    run(main)


def test_only_what_followed_on_the_same_stream_is_sent_again() -> None:
    async def main() -> None:
        kept = SessionEvents(EventRoom())
        first = await kept.store_event("1", None)
        for number, stream in ((1, "1"), (2, "2"), (3, "1")):
            await kept.store_event(stream, message(number))
        sent: list[Any] = []

        async def send(event: EventMessage) -> None:
            sent.append(getattr(event.message, "id", None))

        assert await kept.replay_events_after(first, send) == "1"
        assert sent == [1, 3]
        for unknown in ("0", "99", "x", "", "-1", "٣", "9" * 400):
            assert await kept.replay_events_after(unknown, send) is None
        assert sent == [1, 3]

    run(main)


def test_what_comes_while_a_stream_is_taken_up_again_is_not_lost() -> None:
    async def main() -> None:
        kept = SessionEvents(EventRoom())
        first = await kept.store_event("1", None)
        await kept.store_event("1", message(1))
        sent: list[Any] = []

        async def send(event: EventMessage) -> None:
            sent.append(getattr(event.message, "id", None))
            if len(sent) < 3:  # the server goes on while the client is being sent what it missed
                await kept.store_event("1", message(10 * len(sent)))

        streams = RequestStreams(kept)
        await kept.replay_events_after(first, send)
        assert sent == [1, 10, 20]
        await kept.store_event("1", message(30))
        await kept.store_event("2", message(31))
        streams["1"] = ends = anyio.create_memory_object_stream[EventMessage](16)
        assert getattr(ends[1].receive_nowait().message, "id", None) == 30
        with pytest.raises(anyio.WouldBlock):
            ends[1].receive_nowait()
        for end in ends:
            end.close()

    run(main)


def test_a_stream_that_fell_behind_too_far_ends_so_that_its_client_comes_back() -> None:
    async def main() -> None:
        kept = SessionEvents(EventRoom())
        first = await kept.store_event("1", None)

        async def send(event: EventMessage) -> None:
            raise AssertionError("there was nothing yet")

        await kept.replay_events_after(first, send)
        for number in range(5):
            await kept.store_event("1", message(number))
        streams = RequestStreams(kept)
        streams["1"] = ends = anyio.create_memory_object_stream[EventMessage](2)
        found = [getattr(event.message, "id", None) async for event in ends[1]]
        assert found == [0, 1]
        ends[1].close()

    run(main)


# ---- a server that closes its streams and is to be asked for the rest


@asynccontextmanager
async def polled(mode: str = "auto") -> AsyncIterator[tuple[Polled, httpx2.AsyncClient]]:
    """A server that closes its streams, and a client of the gateway before it."""
    server = Polled()
    async with (
        serving(server) as url,
        gateway(Server("far", "http", url=f"{url}/mcp"), settings={"enabled": mode}) as made,
        listening(made) as http,
    ):
        try:
            yield server, http
        finally:
            server.finished.set()


async def streamed(http: httpx2.AsyncClient, headers: Any, body: Any) -> list[dict[str, str]]:
    """The events of a call's own stream, up to its end."""
    return events((await http.post("/mcp", json=body, headers=headers)).text)


def text_of(answer: Any) -> str:
    return answer["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    ("mode", "body"),
    [
        ("off", call("far__close")),
        ("on", call("tool_call", name="far__close", arguments={})),
    ],
)
def test_a_client_comes_back_for_a_call_whose_stream_the_server_closes(
    mode: str, body: Any
) -> None:
    async def main() -> None:
        async with polled(mode) as (server, http):
            headers = await session(http)
            (opening,) = await streamed(http, headers, body)
            assert (opening["data"], opening["retry"]) == ("", "1000")
            server.finished.set()
            found = await rest(http, headers, opening["id"])
            assert text_of(found[-1]) == "close"
            assert server.runs == 1

    run(main)


def test_the_answer_waits_for_a_client_that_comes_back_late() -> None:
    async def main() -> None:
        async with polled() as (server, http):
            headers = await session(http)
            (opening,) = await streamed(http, headers, call("far__close"))
            server.finished.set()
            await until(lambda: server.answered)
            found = await rest(http, headers, opening["id"])
            assert text_of(found[-1]) == "close"

    run(main)


def test_a_stream_that_was_taken_up_again_is_closed_again_where_the_servers_is() -> None:
    async def main() -> None:
        async with polled() as (server, http):
            headers = await session(http)
            server.closings.clear()  # the second waits until the client is back
            (opening,) = await streamed(http, headers, call("far__twice"))
            more = {**headers, "last-event-id": opening["id"]}
            last = ""
            async with http.stream("GET", "/mcp", headers=more) as answer:
                async for line in answer.aiter_lines():
                    assert not line.startswith("data: {"), "it is not finished"
                    if line.startswith("id: "):
                        last = line.removeprefix("id: ")
                        server.closings.set()
            server.finished.set()
            found = await rest(http, headers, last)
            assert text_of(found[-1]) == "twice"

    run(main)


def test_a_client_of_a_revision_without_polling_keeps_its_stream() -> None:
    async def main() -> None:
        async with polled() as (server, http):
            server.finished.set()
            headers = await session(http, "2025-06-18")
            found = await streamed(http, headers, call("far__close"))
            assert text_of(json.loads(found[-1]["data"])) == "close"

    run(main)


@pytest.mark.parametrize("how", ["break", "nameless"])
def test_a_connection_that_is_lost_is_no_stream_that_is_closed(how: str) -> None:
    async def main() -> None:
        async with polled() as (server, http):
            server.finished.set()
            headers = await session(http)
            found = await streamed(http, headers, call(f"far__{how}"))
            answer = json.loads(found[-1]["data"])
            assert answer["id"] == 7
            if how == "break":
                assert text_of(answer) == "break"
            else:
                assert answer["result"]["isError"] is True

    run(main)


# ---- 2026-07-28


def modern(method: str, params: dict[str, Any], **headers: str) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": META}}
    return {"json": body, "headers": {"mcp-protocol-version": NEW, "mcp-method": method, **headers}}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "a:b"}),
        ("resources/unsubscribe", {"uri": "a:b"}),
    ],
)
def test_what_the_newest_revision_no_longer_has_is_not_there(method: str, params: Any) -> None:
    async def main() -> None:
        async with gateway(odd("one")) as made, listening(made) as http:
            answer = await http.post("/mcp", **modern(method, params))
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == -32601

    run(main)


HEADERS = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}


@pytest.mark.parametrize(
    ("region", "header", "status"),
    [
        ("eu", "eu", 200),
        ("eu", "=?base64?ZXU=?=", 200),
        ("eu", "us", 400),
        ("eu", None, 400),
        ("eu", "=?base64?!!?=", 400),
        (None, "eu", 400),
        (None, None, 200),
    ],
)
def test_a_parameter_that_travels_as_a_header_must_be_the_same_in_both(
    tmp_path: Any, region: str | None, header: str | None, status: int
) -> None:
    async def main() -> None:
        content = {"tools": [{**tool("find", "Finds."), "inputSchema": HEADERS}]}
        server = scoped("web", tmp_path, content)
        async with gateway(server) as made, listening(made) as http:
            arguments = {} if region is None else {"region": region}
            more = {} if header is None else {"mcp-param-region": header}
            for name, expected in (("web__find", status), ("web__nothing", 200)):
                request = modern(
                    "tools/call",
                    {"name": name, "arguments": arguments},
                    **{"mcp-name": name},
                    **more,
                )
                answer = await http.post("/mcp", **request)
                assert answer.status_code == expected, answer.text
                if expected == 400:
                    assert answer.json()["error"]["code"] == -32020

    run(main)
