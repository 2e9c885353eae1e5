"""Clients of 2026-07-28, who have no session, among several replicas."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from cluster.postgres import Postgres
from cluster.roaming import Alternating, replica, replicas
from support.gateways import run, said
from toolfold import prompts
from toolfold.sources.registry import Registry
from toolfold.sources.source import Source

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

NEW = "2026-07-28"
ASK = {"destructive": "ask"}


def source(ran: list[str]) -> Source:
    """A function that is not run unasked."""
    registry = Registry()

    @registry.tool(destructive=True)
    def burn(parcel: str) -> str:
        """Burn a parcel."""
        ran.append(parcel)
        return f"{parcel} is ash"

    assert burn
    return registry.prefixed("own")


async def call(http: httpx2.AsyncClient, url: str, **more: Any) -> Any:
    """Call the function as a client of 2026-07-28; return the answer."""
    envelope = "io.modelcontextprotocol/"
    params = {
        "name": "own__burn",
        "arguments": {"parcel": "p"},
        "_meta": {
            f"{envelope}protocolVersion": NEW,
            f"{envelope}clientCapabilities": {"elicitation": {}},
            f"{envelope}clientInfo": {"name": "t", "version": "1"},
        },
        **more,
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "mcp-protocol-version": NEW,
        "mcp-method": "tools/call",
        "mcp-name": "own__burn",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = await http.post(f"{url}/mcp", json=body, headers=headers)
    return answer.json()


def test_a_question_is_answered_at_another_replica_than_asked(address: str) -> None:
    ran: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={})

    async def main() -> None:
        async with replicas(address, sources=[source(ran)], serve=ASK) as pair:
            balancer = Alternating(*(each.url for each in pair))
            async with (
                balancer.client() as http,
                Client(
                    streamable_http_client(f"{pair[0].url}/mcp", http_client=http),
                    mode="auto",
                    elicitation_callback=answer,
                ) as c,
            ):
                for number in range(3):
                    burnt = said(await c.call_tool("own__burn", {"parcel": str(number)}))
                    assert burnt == f"{number} is ash"
                assert ran == ["0", "1", "2"]

    run(main)


def test_a_token_works_once_wherever_it_is_shown(address: str) -> None:
    ran: list[str] = []
    accepted = {"action": "accept", "content": {}}

    async def main() -> None:
        async with (
            replicas(address, sources=[source(ran)], serve=ASK) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            asked = (await call(http, a.url))["result"]
            state = {
                "requestState": asked["requestState"],
                "inputResponses": dict.fromkeys(asked["inputRequests"], accepted),
            }
            done = (await call(http, b.url, **state))["result"]
            assert done["content"][0]["text"] == "p is ash"
            for url in (a.url, b.url):
                assert (
                    "this question is over" in (await call(http, url, **state))["error"]["message"]
                )
            assert ran == ["p"]

    run(main)


def test_a_call_that_waited_at_a_replica_that_is_gone_says_so(address: str) -> None:
    ran: list[str] = []

    async def main() -> None:
        async with (
            replica(address, sources=[source(ran)], serve=ASK) as b,
            httpx2.AsyncClient(timeout=30) as http,
        ):
            async with replica(address, sources=[source(ran)], serve=ASK) as a:
                asked = (await call(http, a.url))["result"]
            gone = await call(http, b.url, requestState=asked["requestState"], inputResponses={})
            assert gone["error"]["message"] == prompts.REPLICA_GONE

    run(main)


def test_while_the_database_is_away_a_call_waits_on_and_nobody_learns_where_that_is(
    postgres_alone: tuple[Postgres, str],
) -> None:
    ran: list[str] = []
    server, address = postgres_alone

    async def main() -> None:
        async with (
            replicas(address, sources=[source(ran)], serve=ASK) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            asked = (await call(http, a.url))["result"]
            accepted = {"action": "accept", "content": {}}
            state = {
                "requestState": asked["requestState"],
                "inputResponses": dict.fromkeys(asked["inputRequests"], accepted),
            }
            await asyncio.to_thread(server.stop, "immediate")
            refused = (await call(http, b.url, **state))["error"]["message"]
            assert refused == "the call waits at another replica: the database is away, try later"
            await asyncio.to_thread(server.start)
            while "error" in (done := await call(http, b.url, **state)):
                assert done["error"]["message"] == refused
                await asyncio.sleep(0.2)
            assert done["result"]["content"][0]["text"] == "p is ash"
            assert ran == ["p"]

    run(main)


def test_replicas_know_each_others_conversations(address: str) -> None:
    async def main() -> None:
        async with (
            replicas(address, sources=[source([])], serve=ASK) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            await call(http, a.url)
            (cookie,) = [each.name for each in http.cookies.jar]
            before = http.cookies[cookie]
            await call(http, b.url)  # another would be given, were this one not known
            assert http.cookies[cookie] == before

    run(main)
