"""Sessions that are opened at one replica and go on at another."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from cluster.postgres import Postgres
from cluster.roaming import ACCEPT, Alternating, Raw, Told, events, replicas
from support.gateways import ODD, odd, run, said, until
from toolfold.config.served_profiles import ServedProfile
from toolfold.sources.mcp.server import Server

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")


def test_a_conversation_goes_on_whichever_replica_is_asked(address: str) -> None:
    async def main() -> None:
        async with replicas(address, odd("one", "old")) as pair:
            balancer = Alternating(*(each.url for each in pair))
            async with (
                balancer.client() as http,
                Client(
                    streamable_http_client(f"{pair[0].url}/mcp", http_client=http), mode="legacy"
                ) as c,
            ):
                for number in range(8):
                    assert said(await c.call_tool("one__echo", {"x": str(number)})).endswith(
                        str(number)
                    )
                    assert len((await c.list_tools()).tools) > 5
            assert {port for _, port in balancer.asked} == {
                httpx2.URL(each.url).port for each in pair
            }
            await until(lambda: not any(len(each.gateway.clients) for each in pair))

    run(main)


def test_a_question_is_answered_at_any_replica(address: str) -> None:
    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"v": params.message})

    async def main() -> None:
        async with replicas(address, odd("one", "old")) as pair:
            balancer = Alternating(*(each.url for each in pair))
            async with (
                balancer.client() as http,
                Client(
                    streamable_http_client(f"{pair[0].url}/mcp", http_client=http),
                    mode="legacy",
                    elicitation_callback=answer,
                ) as c,
            ):
                for number in range(4):
                    asked = said(await c.call_tool("one__elicit", {"x": str(number)}))
                    assert asked.startswith(f"{number}->accept") and f"ask:{number}" in asked

    run(main)


def test_a_call_is_given_up_from_another_replica(address: str, tmp_path: Any) -> None:
    mark = tmp_path / "mark"

    async def main() -> None:
        async with (
            replicas(address, odd("one", env={"MARK": str(mark)})) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)
            calling = asyncio.create_task(raw.call(a.url, "one__slow", 7, x="30"))
            await until(lambda: mark.exists() and "started" in mark.read_text())
            told = await raw.post(b.url, method="notifications/cancelled", params={"requestId": 7})
            assert told.status_code == 202
            assert (await calling)["error"]["code"] == -32800
            await until(lambda: "cancelled" in mark.read_text())

    run(main)


def test_a_stream_is_taken_up_again_at_another_replica(address: str, tmp_path: Any) -> None:
    mark = tmp_path / "mark"

    async def main() -> None:
        async with (
            replicas(address, odd("one", env={"MARK": str(mark)})) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)
            params = {"name": "one__slow", "arguments": {"x": "1"}}
            call = {"id": 5, "method": "tools/call", "params": params}
            async with raw.stream(a.url, "POST", **call) as response:
                last = await Told(response).event()
            await until(lambda: mark.exists() and "started" in mark.read_text())
            async with raw.stream(b.url, "GET", last) as response:
                assert response.status_code == 200
                (message,) = events((await response.aread()).decode())
            assert message["id"] == 5
            assert message["result"]["content"][0]["text"] == "slept"

    run(main)


def test_a_session_is_its_owners_and_what_ends_it_ends_it_everywhere(address: str) -> None:
    from toolfold.config.serve_settings import Token
    from toolfold.serve.token_store import digest_of

    names = {"one": "a" * 32, "two": "b" * 32}
    tokens = tuple(Token(name, sha256=digest_of(value)) for name, value in names.items())

    async def main() -> None:
        async with (
            replicas(address, serve={"tokens": tokens}) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            mine = Raw(http, {"authorization": f"Bearer {names['one']}"})
            session = await mine.open(a.url)
            theirs = Raw(
                http, {"authorization": f"Bearer {names['two']}", "mcp-session-id": session}
            )
            nobodys = Raw(http, {**theirs.headers, "mcp-session-id": "0" * 32})
            unknown = await nobodys.post(b.url, method="tools/list", id=1)
            assert unknown.status_code == 404
            for url in (a.url, b.url, b.url):
                refused = await theirs.post(url, method="tools/list", id=1)
                assert (refused.status_code, refused.text) == (404, unknown.text)
                assert (await mine.post(url, method="tools/list", id=2)).status_code == 200
                deleted = await http.delete(f"{url}/mcp", headers=theirs.headers)
                assert deleted.status_code == 404

            ended = await http.delete(f"{b.url}/mcp", headers=mine.headers)
            assert ended.status_code == 200
            await until(lambda: not len(a.gateway.clients) and not len(b.gateway.clients))
            for url in (a.url, b.url):
                gone = await mine.post(url, method="tools/list", id=3)
                assert (gone.status_code, gone.text) == (404, unknown.text)

    run(main)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/part"])
def test_a_session_that_is_ended_elsewhere_makes_room_where_it_was_opened(
    address: str, path: str
) -> None:
    async def main() -> None:
        profiles = (ServedProfile("part"),)
        async with (
            replicas(address, profiles=profiles, serve={"sessions_per_token": 1}) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http, path=path)
            await raw.open(a.url)
            ended = await http.delete(f"{b.url}{path}", headers=raw.headers)
            assert ended.status_code == 200
            status = 429
            for _ in range(200):
                if status == 429:
                    await asyncio.sleep(0.05)
                    status = await _opened(http, f"{a.url}{path}")
            assert status == 200

    run(main)


async def _opened(http: httpx2.AsyncClient, url: str) -> int:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    return (await http.post(url, json=body, headers=ACCEPT)).status_code


def test_a_session_that_comes_back_while_it_is_let_go_of_is_held_once(address: str) -> None:
    slow_to_end = f"trap '' TERM; {shlex.quote(sys.executable)} {ODD} stdio old; sleep 60"
    own = Server("one", command="sh", args=("-c", slow_to_end), per_session=True)

    async def main() -> None:
        async with (
            replicas(address, own, count=3, serve={"sessions_per_token": 1}) as (a, b, c),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            mine, other = Raw(http), Raw(http)
            key = await mine.open(a.url)
            await other.open(b.url)

            async def asked(raw: Raw, number: int) -> None:
                answer = await raw.call(c.url, "one__echo", number, x="a")
                assert answer["result"]["content"][0]["text"].endswith("a")

            await asked(mine, 1)
            await asked(other, 1)  # there is room for one, whose server takes its time to end
            await asked(mine, 2)
            await until(lambda: len(c.gateway.clients) == 1, 30)
            await asked(mine, 3)
            assert [client.key for client in c.gateway.clients] == [key]

    run(main)


def test_sessions_go_on_while_the_database_takes_no_writes(
    postgres_alone: tuple[Postgres, str],
) -> None:
    server, address = postgres_alone

    async def main() -> None:
        async with (
            replicas(address, odd("one", "old"), serve={"session_idle": 4}) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)

            async def asked(url: str, number: int) -> None:
                answer = await raw.call(url, "one__echo", number, x="a")
                assert answer["result"]["content"][0]["text"].endswith("a")

            server.takes_writes(on=False)
            for number in range(6):  # rows of sessions in use are touched every second
                await asyncio.sleep(0.5)
                await asked(a.url, number)
            server.takes_writes(on=True)
            await asyncio.sleep(1.5)
            for url in (b.url, a.url):
                await asked(url, 9)

    run(main)


def test_what_a_client_wishes_for_holds_where_it_listens(address: str) -> None:
    async def main() -> None:
        async with (
            replicas(address, odd("one", "old")) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)
            await raw.post(b.url, method="notifications/initialized")
            level = await raw.post(
                b.url, method="logging/setLevel", params={"level": "error"}, id=1
            )
            assert events(level.text)[-1]["result"] == {}
            await raw.post(a.url, method="tools/list", id=2)
            await until(lambda: [client.level for client in a.gateway.clients] == ["error"])

    run(main)


def test_what_belongs_to_no_call_reaches_the_client_where_it_listens(address: str) -> None:
    async def main() -> None:
        async with replicas(address) as (a, b), httpx2.AsyncClient(timeout=30) as http:
            raw = Raw(http)
            session = await raw.open(a.url, roots={})
            async with raw.stream(a.url, "GET") as listening:
                assert listening.status_code == 200
                await raw.post(b.url, method="notifications/initialized")
                await until(lambda: len(b.gateway.clients) == 1)
                (client,) = b.gateway.clients
                assert client.key == session
                told = Told(listening)

                await client.log({"level": "error", "data": "from b"})
                message = await told.message("notifications/message")
                assert message["params"]["data"] == "from b"

                asking = asyncio.create_task(client.ask("roots/list", {}))
                message = await told.message("roots/list")
                answered = await raw.post(a.url, id=message["id"], result={"roots": []})
                assert answered.status_code == 202
                assert await asking == {"roots": []}

    run(main)


def test_a_client_that_began_to_listen_while_the_database_was_away_is_reached_afterwards(
    postgres_alone: tuple[Postgres, str],
) -> None:
    server, address = postgres_alone

    async def main() -> None:
        async with (
            replicas(address, serve={"session_idle": 4}) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)
            await raw.post(b.url, method="notifications/initialized")
            (client,) = b.gateway.clients
            await asyncio.to_thread(server.stop, "immediate")
            async with raw.stream(a.url, "GET") as listening:
                assert listening.status_code == 200
                await asyncio.to_thread(server.start)
                told = asyncio.create_task(Told(listening).message("notifications/message"))
                for _ in range(100):
                    if not told.done():
                        await raw.post(b.url, method="notifications/initialized")  # it is in use
                        await client.log({"level": "error", "data": "from b"})
                        await asyncio.sleep(0.1)
                message = await asyncio.wait_for(told, 1)
                assert message["params"]["data"] == "from b"

    run(main)


def test_the_list_grows_for_a_client_that_listens_elsewhere(address: str) -> None:
    async def main() -> None:
        settings = {"strategy": "reveal", "enabled": "on"}
        async with (
            replicas(address, odd("one", "old"), settings=settings) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            await raw.open(a.url)
            async with raw.stream(a.url, "GET") as listening:
                await raw.post(a.url, method="tools/list", id=1)
                found = await raw.call(b.url, "tool_search", 2, query="say a text back")
                assert "one__echo" in json.dumps(found)
                await Told(listening).message("notifications/tools/list_changed")

    run(main)


def test_what_was_found_elsewhere_is_listed_while_the_database_is_away(
    postgres_alone: tuple[Postgres, str],
) -> None:
    server, address = postgres_alone

    async def main() -> None:
        settings = {"strategy": "reveal", "enabled": "on"}
        async with (
            replicas(address, odd("one", "old"), settings=settings) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            raw = Raw(http)
            session = await raw.open(a.url)
            await raw.call(b.url, "tool_search", 1, query="say a text back")
            await until(lambda: session in a.gateway.sessions)
            await asyncio.to_thread(server.stop, "immediate")
            listed = await raw.post(a.url, method="tools/list", id=2)
            assert "one__echo" in [
                tool["name"] for tool in events(listed.text)[-1]["result"]["tools"]
            ]

    run(main)


def test_a_session_that_is_opened_while_the_database_is_away_moves_as_soon_as_it_is_back(
    postgres_alone: tuple[Postgres, str],
) -> None:
    server, address = postgres_alone

    async def main() -> None:
        async with (
            replicas(address, odd("one", "old")) as (a, b),
            httpx2.AsyncClient(timeout=30) as http,
        ):
            await asyncio.to_thread(server.stop, "immediate")
            raw = Raw(http)
            await raw.open(a.url)
            told = [(await raw.post(b.url, method="tools/list", id=1)).status_code]
            await asyncio.to_thread(server.start)
            async with asyncio.timeout(4):
                while told[-1] != 200:
                    told.append((await raw.post(b.url, method="tools/list", id=1)).status_code)
            # Meanwhile it is never said to be over.
            assert set(told) == {503, 200}

    run(main)
