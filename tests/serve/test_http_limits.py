"""What a client over HTTP may hold: connections, requests, sessions, and for how long."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st

from support.gateways import gateway, odd, run, until
from toolfold.serve.gateway import Gateway
from toolfold.serve.http.app import make_app
from toolfold.serve.http.connections import BACKLOG, Connections
from toolfold.serve.http.presence import Presence, TooManyError, Visit

pytestmark = pytest.mark.slow

HEADERS = {"accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}},
}


@asynccontextmanager
async def listening(made: Gateway) -> AsyncIterator[tuple[str, int, Connections]]:
    """The gateway's application as `toolfold serve --http` listens."""
    serve = made.config.serve
    connections = Connections(serve.max_connections, serve.request_timeout)
    config = uvicorn.Config(
        make_app(made, "127.0.0.1"), port=0, log_config=None, timeout_graceful_shutdown=1,
        http=connections.protocol(), backlog=BACKLOG,
    )  # fmt: skip
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve())  # pyright: ignore[reportPrivateUsage]
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp", port, connections
    finally:
        server.should_exit = True
        await serving


async def opened(http: httpx2.AsyncClient, url: str, **headers: str) -> httpx2.Response:
    return await http.post(url, json=INITIALIZE, headers={**HEADERS, **headers})


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the other side closes, within a time."""
    with suppress(ConnectionError):
        async with asyncio.timeout(10):
            return not await reader.read()
    return True


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "])
def test_a_thousand_half_open_connections_do_not_stop_the_service(sent: bytes) -> None:
    async def main() -> None:
        serve = {"max_connections": 100, "request_timeout": 60}
        async with gateway(odd("one"), serve=serve) as made, listening(made) as (url, port, all_):
            held: list[socket.socket] = []
            try:
                for _ in range(1_018):
                    one = socket.socket()
                    one.setblocking(False)
                    await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", port))
                    with suppress(OSError):
                        one.send(sent)
                    held.append(one)
                    if len(held) > 300:  # the test's own share of what may be open
                        held.pop(0).close()
                async with httpx2.AsyncClient(timeout=10) as http:
                    assert (await opened(http, url)).status_code == 200
                assert len(all_) <= 100
            finally:
                for one in held:
                    one.close()

    run(main)


@pytest.mark.parametrize(
    ("first", "sent"),
    [
        (b"", b""),
        (b"", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "),
        (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET /he"),
    ],
    ids=["silence", "half a request", "half of a second request"],
)
def test_headers_that_do_not_come_end_the_connection(first: bytes, sent: bytes) -> None:
    async def main() -> None:
        async with (
            gateway(odd("one"), serve={"request_timeout": 0.3}) as made,
            listening(made) as (_, port, all_),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            if first:
                assert b" 200 " in await reader.readline()
                assert await reader.readuntil(b"}")
            began = time.monotonic()
            writer.write(sent)
            assert await ended(reader)
            assert time.monotonic() - began < 4  # before the library's own five seconds
            await until(lambda: not len(all_), 4)
            writer.close()

    run(main)


def test_a_body_that_does_not_come_is_refused() -> None:
    async def main() -> None:
        async with (
            gateway(odd("one"), serve={"request_timeout": 0.3}) as made,
            listening(made) as (_, port, _all),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{")
            async with asyncio.timeout(10):
                assert b" 408 " in await reader.readline()
            writer.close()

    run(main)


def test_connections_with_a_request_under_way_do_not_give_way() -> None:
    async def main() -> None:
        async with (
            gateway(odd("one"), serve={"max_connections": 2}) as made,
            listening(made) as (url, port, _all),
            httpx2.AsyncClient(timeout=10) as http,
        ):
            session = (await opened(http, url)).headers["mcp-session-id"]
            own = {**HEADERS, "mcp-session-id": session}
            async with http.stream("GET", url, headers=own) as stream:
                assert stream.status_code == 200
                for _ in range(10):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                said = await http.post(url, json=note, headers=own)
                assert said.status_code == 202
                assert not stream.is_closed

    run(main)


def test_sessions_are_bounded_for_each_and_a_closed_one_makes_room() -> None:
    async def main() -> None:
        async with (
            gateway(odd("one"), serve={"sessions_per_token": 2}) as made,
            listening(made) as (url, _port, _all),
            httpx2.AsyncClient(timeout=10) as http,
        ):
            first = await opened(http, url)
            assert [r.status_code for r in (first, await opened(http, url))] == [200, 200]
            refused = await opened(http, url)
            assert (refused.status_code, refused.text) == (429, "too many sessions\n")
            assert refused.headers["retry-after"]

            modern = {"mcp-method": "server/discover", "mcp-protocol-version": "2026-07-28"}
            found = await http.post(url, json=DISCOVER, headers={**HEADERS, **modern})
            assert found.status_code != 429

            own = {"mcp-session-id": first.headers["mcp-session-id"]}
            assert (await http.delete(url, headers={**HEADERS, **own})).status_code == 200
            assert (await opened(http, url)).status_code == 200

    run(main)


def test_an_idle_session_expires_and_makes_room() -> None:
    async def main() -> None:
        serve = {"max_sessions": 1, "session_idle": 1}
        async with (
            gateway(odd("one"), serve=serve) as made,
            listening(made) as (url, _port, _all),
            httpx2.AsyncClient(timeout=10) as http,
        ):
            session = (await opened(http, url)).headers["mcp-session-id"]
            assert (await opened(http, url)).status_code == 429
            end = time.monotonic() + 15
            while (await opened(http, url)).status_code != 200:
                assert time.monotonic() < end
                await asyncio.sleep(0.1)
            own = {**HEADERS, "mcp-session-id": session}
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            assert (await http.post(url, json=ping, headers=own)).status_code == 404

    run(main)


def test_requests_under_way_are_bounded_for_each() -> None:
    async def main() -> None:
        async with (
            gateway(odd("one"), serve={"requests_per_token": 1}) as made,
            listening(made) as (url, _port, _all),
            httpx2.AsyncClient(timeout=10) as http,
        ):
            session = (await opened(http, url)).headers["mcp-session-id"]
            own = {**HEADERS, "mcp-session-id": session}
            held = 429
            while held == 429:  # until the request that opened the session is over
                async with http.stream("GET", url, headers=own) as stream:
                    held = stream.status_code
                    if held == 200:
                        refused = await opened(http, url)
                        assert refused.status_code == 429
                        assert refused.text == "too many requests\n"
            assert held == 200

    run(main)


# ---- the law


def test_a_session_that_was_ended_elsewhere_leaves_room_for_another() -> None:
    presence = Presence(sessions_each=1)
    visit = presence.enter("ann", None, opens=True)
    visit.answered(200, "s1")
    visit.leave(ended=False)
    with pytest.raises(TooManyError):
        presence.enter("ann", None, opens=True)

    presence.forget("s1")

    assert presence.sessions_of("ann") == 0
    presence.enter("ann", None, opens=True)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "answer", "leave", "end", "wait"]),
        st.sampled_from(["ann", "bob"]),
        st.integers(0, 9),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(STEPS)
def test_nobody_has_more_than_they_may(steps: list[tuple[str, str, int]]) -> None:
    now = 0.0
    presence = Presence(requests_each=3, sessions_each=2, sessions=3, idle=10, clock=lambda: now)
    visits: list[Visit] = []
    for number, (step, who, n) in enumerate(steps):
        if step == "enter":
            named = f"s{n}" if n % 2 else None
            with suppress(TooManyError):
                visits.append(presence.enter(who, named, opens=named is None))
        elif step == "wait":
            now += n
        elif visits:
            visit = visits[n % len(visits)]
            if step == "answer":
                visit.answered(200, f"s{number}")
            else:
                visits.remove(visit)
                visit.leave(ended=step == "end")
        for owner in ("ann", "bob"):
            assert sum(visit.owner == owner for visit in visits) <= 3
            assert 0 <= presence.sessions_of(owner) <= 2
    for visit in visits:
        visit.leave(ended=False)
    now += 100
    last: Any = [presence.enter("ann", None, opens=True) for _ in range(2)]
    assert len(last) == 2
