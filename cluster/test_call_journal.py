"""Calls that a client sends twice, and that run once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from cluster.postgres import Postgres
from cluster.roaming import ACCEPT, Raw, events, replica, replicas
from support.gateways import run, until
from toolfold import prompts
from toolfold.sources.registry import Registry
from toolfold.sources.source import Source

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")


class Machine:
    """Functions that say how often they ran, and of which one ends when it may."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.may_end = asyncio.Event()

    def source(self) -> Source:
        """Return them, for one replica."""
        registry = Registry()

        @registry.tool
        async def send(parcel: str) -> str:
            """Send a parcel."""
            self.ran.append(parcel)
            return f"sent {parcel}"

        @registry.tool
        async def carry(parcel: str) -> str:
            """Carry a parcel, which takes a while."""
            self.ran.append(parcel)
            await self.may_end.wait()
            return f"carried {parcel}"

        @registry.tool(read_only=True)
        async def weigh(parcel: str) -> str:
            """Weigh a parcel."""
            self.ran.append(parcel)
            return "1 kg"

        @registry.tool
        async def pour(parcel: str) -> str:
            """Give back more than is kept."""
            self.ran.append(parcel)
            return "x" * 300_000

        assert send and carry and weigh and pour
        return registry.prefixed("own")


def text(message: Any) -> str:
    """The text of a result."""
    return message["result"]["content"][0]["text"]


def test_a_call_that_is_sent_again_is_answered_and_not_run(address: str) -> None:
    async def main() -> None:
        machine = Machine()
        async with (
            replicas(address, sources=[machine.source()]) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)
            for url in (a.url, b.url, a.url):
                assert text(await raw.call(url, "own__send", 1, parcel="p")) == "sent p"
            assert machine.ran == ["p"]
            # An id that is used for something else names that from then on.
            assert text(await raw.call(b.url, "own__send", 1, parcel="q")) == "sent q"
            assert text(await raw.call(a.url, "own__send", 2, parcel="q")) == "sent q"
            assert machine.ran == ["p", "q", "q"]
            # What changes nothing may run as often as it is asked for.
            for url in (a.url, b.url):
                assert text(await raw.call(url, "own__weigh", 3, parcel="w")) == "1 kg"
            assert machine.ran[3:] == ["w", "w"]

            other = Raw(http)
            await other.open(b.url)
            assert text(await other.call(b.url, "own__send", 1, parcel="p")) == "sent p"
            assert machine.ran[5:] == ["p"]

            await raw.call(a.url, "own__pour", 4, parcel="much")
            again = await raw.call(b.url, "own__pour", 4, parcel="much")
            assert again["result"]["isError"]
            assert text(again) == prompts.RESULT_NOT_KEPT
            assert machine.ran[6:] == ["much"]

    run(main)


def test_a_call_that_is_sent_again_where_its_tool_is_not_is_answered_with_what_it_came_to(
    address: str,
) -> None:
    async def main() -> None:
        machine = Machine()
        async with (
            replica(address, sources=[machine.source()]) as a,
            replica(address) as b,
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)
            sent = await raw.call(a.url, "own__send", 1, parcel="p")
            assert (await raw.call(b.url, "own__send", 1, parcel="p"))["result"] == sent["result"]
            # What was never sent is not there, and neither is another call by the same id.
            for number, parcel in ((1, "q"), (2, "p")):
                missing = await raw.call(b.url, "own__send", number, parcel=parcel)
                assert missing["result"]["isError"]
                assert text(missing).startswith('"own__send" is not available in this session.')
            assert machine.ran == ["p"]

    run(main)


def test_a_client_without_a_session_names_a_call_that_it_may_send_twice(address: str) -> None:
    async def main() -> None:
        machine = Machine()
        async with (
            replicas(address, sources=[machine.source()]) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            await _modern(http, a.url, 1, "first", parcel="p")
            for url, number in ((b.url, 1), (a.url, 2)):
                again = await _modern(http, url, number, "first", parcel="p")
                assert text(again) == "sent p"
            assert machine.ran == ["p"]
            await _modern(http, b.url, 1, "second", parcel="p")
            await _modern(http, b.url, 1, None, parcel="p")
            await _modern(http, b.url, 1, None, parcel="p")
            assert machine.ran == ["p"] * 4

    run(main)


async def _modern(
    http: httpx2.AsyncClient, url: str, number: int, key: str | None, **arguments: str
) -> Any:
    """Send a parcel as a client of 2026-07-28; return the answer's message."""
    space = "io.modelcontextprotocol/"
    meta = {f"{space}protocolVersion": "2026-07-28", f"{space}clientCapabilities": {}}
    params = {"name": "own__send", "arguments": arguments, "_meta": meta}
    headers = {
        **ACCEPT,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "own__send",
        **({} if key is None else {"idempotency-key": key}),
    }
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    answer = await http.post(f"{url}/mcp", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return (events(answer.text) or [json.loads(answer.text)])[-1]


def test_a_call_that_is_sent_again_while_it_runs_is_waited_for(address: str) -> None:
    async def main() -> None:
        machine = Machine()
        async with (
            replicas(address, sources=[machine.source()]) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)
            params = {"name": "own__carry", "arguments": {"parcel": "p"}}
            first = raw.post(a.url, method="tools/call", params=params, id=1)
            lost = asyncio.create_task(first)
            await until(lambda: machine.ran)
            calls = [
                asyncio.create_task(raw.call(url, "own__carry", 1, parcel="p"))
                for url in (a.url, b.url)
            ]
            await until(lambda: len(a.gateway.calls) == 2 and len(b.gateway.calls) == 1)
            machine.may_end.set()
            assert [text(await call) for call in calls] == ["carried p"] * 2
            assert events((await lost).text) == []  # the answer goes to who asked last
            assert machine.ran == ["p"]

    run(main)


def test_of_a_call_whose_replica_is_gone_nobody_knows_whether_it_ran(address: str) -> None:
    async def main() -> None:
        machine = Machine()
        async with (
            replica(address, sources=[machine.source()]) as b,
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            async with replica(address, sources=[machine.source()]) as a:
                await raw.open(a.url)
                calling = asyncio.create_task(raw.call(a.url, "own__carry", 1, parcel="p"))
                await until(lambda: machine.ran)
                # As if it were killed: it says nothing any more.
                assert a.gateway.membership is not None
                await a.gateway.membership.replicas.__aexit__()
                again = await raw.call(b.url, "own__carry", 1, parcel="p")
                assert text(again) == prompts.REPLICA_GONE
                assert again["result"]["isError"]
                assert machine.ran == ["p"]
                calling.cancel()

    run(main)


def test_calls_go_on_without_the_journal_while_the_database_is_away(
    postgres_alone: tuple[Postgres, str], caplog: pytest.LogCaptureFixture
) -> None:
    server, address = postgres_alone

    async def main() -> None:
        machine = Machine()
        async with (
            replicas(address, sources=[machine.source()]) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw, elsewhere = Raw(http), Raw(http)
            await raw.open(a.url)
            session = await elsewhere.open(b.url)
            await asyncio.to_thread(server.stop, "immediate")
            for number in range(3):
                told = await raw.call(a.url, "own__send", number, parcel=str(number))
                assert text(told) == f"sent {number}"
            assert sum("may run twice" in each.message for each in caplog.records) == 1
            # Another replica's session cannot be looked up, which is not to say that it is over.
            headers = {**ACCEPT, "mcp-session-id": session}
            unknown = await http.post(f"{a.url}/mcp", content=json.dumps({}), headers=headers)
            assert unknown.status_code == 503
            assert "retry-after" in unknown.headers
            await asyncio.to_thread(server.start)

            async with asyncio.timeout(20):
                while (await elsewhere.post(a.url, method="tools/list", id=1)).status_code != 200:
                    pass

    run(main)
