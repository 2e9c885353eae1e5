"""The gateway over streamable HTTP: many clients, tokens, sessions, news."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as t
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ToolsListChanged
from mcp.shared.exceptions import MCPError

from support.gateways import ERAS, ODD, client, gateway, odd, run, said, until
from support.machine import free_port
from support.servers import expected
from toolfold.config.serve_settings import Token
from toolfold.serve.gateway import Gateway
from toolfold.serve.http.app import make_app
from toolfold.sources.mcp.server import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]


@asynccontextmanager
async def listening(made: Gateway, port: int = 0) -> AsyncIterator[str]:
    """The gateway's application on a port of its own; yields its address."""
    config = uvicorn.Config(
        make_app(made, "127.0.0.1", metrics=lambda: "a 1\n"),
        port=port,
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve())  # pyright: ignore[reportPrivateUsage]
    await until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def connected(
    url: str, mode: str = "legacy", token: str | None = None, **more: Any
) -> AsyncIterator[Client]:
    """The official client over HTTP."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=None)) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, **more) as c,
    ):
        yield c


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def test_clients_of_both_eras_side_by_side_get_their_own_answers() -> None:
    async def main() -> None:
        async with (
            gateway(odd("one"), odd("two", "old"), settings={"enabled": "on"}) as made,
            listening(made) as url,
        ):

            async def one(number: int) -> None:
                async with connected(url, ERAS[number % 2]) as c:
                    for i in range(10):
                        x = f"{number}.{i}"
                        call = {"name": f"{('one', 'two')[i % 2]}__echo", "arguments": {"x": x}}
                        assert said(await c.call_tool("tool_call", call)).endswith(f":{x}")

            async with asyncio.TaskGroup() as group:
                for number in range(20):
                    group.create_task(one(number))
            await until(lambda: not len(made.clients))

    run(main)


@pytest.mark.parametrize("mode", ERAS)
def test_results_questions_and_progress_pass_over_http(mode: str) -> None:
    async def main() -> None:
        steps: list[str | None] = []

        async def answer(context: object, params: Any) -> t.ElicitResult:
            return t.ElicitResult(action="accept", content={"v": params.message})

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append(message)

        async with (
            gateway(odd("one"), odd("two", "old")) as made,
            listening(made) as url,
            connected(url, mode, elicitation_callback=answer) as c,
        ):
            for server in ("one", "two"):
                asked = said(await c.call_tool(f"{server}__elicit", {"x": "q"}))
                message = f"The server '{server}' asks: ask:q"
                assert asked.startswith(f'q->accept:{{"v": "{message}"}}')
                await c.call_tool(f"{server}__progress", {"x": "p"}, progress_callback=progress)
                rich = await c.call_tool(f"{server}__rich", {})
                assert rich.structured_content == expected.RICH["structuredContent"]
            assert sorted(steps, key=str) == [f"p{i}" for i in range(5) for _ in range(2)]

    run(main)


def test_raw_results_are_the_servers_own_to_the_letter() -> None:
    async def main() -> None:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "one__rich",
                "arguments": {},
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        }
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "one__rich",
        }
        async with (
            gateway(odd("one")) as made,
            listening(made) as url,
            httpx2.AsyncClient() as http,
        ):
            answer = await http.post(f"{url}/mcp", json=body, headers=headers)
            assert json.dumps(answer.json()["result"]) == json.dumps(
                {"resultType": "complete", **expected.RICH}
            )
            health = await http.get(f"{url}/healthz")
            assert (health.status_code, health.json()) == (200, {"status": "ok"})
            assert (await http.get(f"{url}/metrics")).text == "a 1\n"

    run(main)


def test_each_token_opens_its_own_scope_and_sessions() -> None:
    async def main() -> None:
        tokens = (
            Token("all", sha256=digest("token-of-everybody")),
            Token("few", sha256=digest("token-of-somebody"), allow=("one__e*",)),
        )
        async with (
            gateway(odd("one"), odd("two"), serve={"tokens": tokens}) as made,
            listening(made) as url,
        ):
            async with connected(url, token="token-of-everybody") as c:
                assert len((await c.list_tools()).tools) == 34
            for mode in ERAS:
                async with connected(url, mode, token="token-of-somebody") as c:
                    names = [tool.name for tool in (await c.list_tools()).tools]
                    assert names == ["one__echo", "one__elicit", "one__env"]
                    assert (await c.call_tool("two__echo", {})).is_error
            async with httpx2.AsyncClient() as http:
                headers = {"accept": "application/json, text/event-stream"}
                hello = {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "initialize",
                    "params": {
                        "protocolVersion": "2025-11-25",
                        "capabilities": {},
                        "clientInfo": {"name": "a", "version": "1"},
                    },
                }
                refused = await http.post(f"{url}/mcp", json=hello, headers=headers)
                assert refused.status_code == 401
                own = {**headers, "authorization": "Bearer token-of-everybody"}
                opened = await http.post(f"{url}/mcp", json=hello, headers=own)
                session = {"mcp-session-id": opened.headers["mcp-session-id"]}
                other = {**headers, "authorization": "Bearer token-of-somebody", **session}
                listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
                stolen = await http.post(f"{url}/mcp", json=listing, headers=other)
                assert stolen.status_code == 404

    run(main)


def test_both_eras_hear_of_a_changed_list() -> None:
    async def main() -> None:
        told = asyncio.Event()

        async def listen(message: object) -> None:
            if isinstance(message, t.ToolListChangedNotification):
                told.set()

        async with (
            gateway(odd("one"), odd("two", "old")) as made,
            listening(made) as url,
            connected(url, message_handler=listen) as old,
            connected(url, "auto") as new,
            new.listen(tools_list_changed=True) as events,
        ):
            assert (await old.list_tools()).tools
            assert old.server_capabilities.tools.list_changed is True  # type: ignore[union-attr]
            await until(lambda: len(made.clients) == 2)
            await new.call_tool("two__grow", {"x": "newer"})
            await asyncio.wait_for(told.wait(), 5)
            async with asyncio.timeout(5):
                assert await anext(aiter(events)) == ToolsListChanged()
            assert "two__newer" in [tool.name for tool in (await new.list_tools()).tools]

    run(main)


def test_a_parked_question_cannot_be_answered_by_another_principal() -> None:
    async def main() -> None:
        tokens = (
            Token("first", sha256=digest("token-of-the-first")),
            Token("second", sha256=digest("token-of-the-second")),
        )

        async def post(http: httpx2.AsyncClient, url: str, token: str, **more: Any) -> Any:
            meta = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
            }
            params = {"name": "one__elicit", "arguments": {"x": "q"}, "_meta": meta, **more}
            answer = await http.post(
                f"{url}/mcp",
                json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
                headers={
                    "accept": "application/json, text/event-stream",
                    "authorization": f"Bearer {token}",
                    "mcp-protocol-version": "2026-07-28",
                    "mcp-method": "tools/call",
                    "mcp-name": "one__elicit",
                },
            )
            return answer.json()

        async with (
            gateway(odd("one", "old"), serve={"tokens": tokens}) as made,
            listening(made) as url,
            httpx2.AsyncClient() as http,
        ):
            asked = (await post(http, url, "token-of-the-first"))["result"]
            assert asked["resultType"] == "input_required"
            (key,) = asked["inputRequests"]
            responses = {key: {"action": "accept", "content": {"v": "a"}}}
            again = {"inputResponses": responses, "requestState": asked["requestState"]}
            stolen = await post(http, url, "token-of-the-second", **again)
            assert stolen["error"]["message"] == "this question is over: make the call again"
            answered = (await post(http, url, "token-of-the-first", **again))["result"]
            assert answered["content"][0]["text"] == 'q->accept:{"v": "a"}'
            twice = await post(http, url, "token-of-the-first", **again)
            assert twice["error"]["message"] == "this question is over: make the call again"

    run(main)


async def far_process(port: int, *flags: str) -> asyncio.subprocess.Process:
    """A server of ours over HTTP, when it listens."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, ODD, "http", str(port), *flags, stderr=subprocess.DEVNULL
    )
    async with httpx2.AsyncClient() as http:
        while True:
            try:
                await http.get(f"http://127.0.0.1:{port}/mcp")
                return process
            except httpx2.TransportError:
                await asyncio.sleep(0.05)


async def killed(process: asyncio.subprocess.Process) -> None:
    process.kill()
    await process.wait()


@pytest.mark.parametrize(("mode", "flag"), [("legacy", "old"), ("auto", "plain")])
def test_a_server_over_http_that_dies_in_mid_call_is_found_again(mode: str, flag: str) -> None:
    async def main() -> None:
        port = free_port()
        process = await far_process(port, flag)
        far = Server("far", "http", url=f"http://127.0.0.1:{port}/mcp")
        try:
            async with (
                gateway(far, odd("near")) as made,
                listening(made) as url,
                connected(url, mode) as c,
            ):
                assert said(await c.call_tool("far__echo", {"x": "a"})) == "a"
                call = asyncio.create_task(c.call_tool("far__slow", {"x": "30"}))
                await until(lambda: len(made.pool.upstreams["far"].in_flight) == 1)
                await killed(process)
                assert (await call).is_error
                assert said(await c.call_tool("near__echo", {"x": "b"})) == "near:b"
                process = await far_process(port, flag)
                await until(lambda: made.pool.upstreams["far"].state == "ready", 20)
                assert said(await c.call_tool("far__echo", {"x": "c"})) == "c"
        finally:
            await killed(process)

    run(main)


@pytest.mark.parametrize("flag", ["old", "plain"])
def test_a_server_restarted_between_two_calls_is_asked_as_if_nothing_were(flag: str) -> None:
    async def main() -> None:
        port = free_port()
        process = await far_process(port, flag)
        far = Server("far", "http", url=f"http://127.0.0.1:{port}/mcp")
        try:
            async with gateway(far) as made, client(made) as c:
                assert said(await c.call_tool("far__wipe", {"x": "a"})) == "a"
                await killed(process)
                process = await far_process(port, flag)
                assert said(await c.call_tool("far__wipe", {"x": "b"})) == "b"
        finally:
            await killed(process)

    run(main)


def test_an_error_over_http_is_the_servers_own() -> None:
    async def main() -> None:
        async with (
            gateway(odd("one")) as made,
            listening(made) as url,
            connected(url) as c,
        ):
            with pytest.raises(MCPError) as caught:
                await c.call_tool("one__fail", {"x": "because"})
            assert (caught.value.code, caught.value.data) == (-32050, {"why": "because"})

    run(main)


def test_a_server_that_refuses_us_is_reported_with_the_way_out() -> None:
    async def main() -> None:
        token = Token("all", sha256=digest("token-of-everybody"))
        async with (
            gateway(odd("one"), serve={"tokens": (token,)}) as inner,
            listening(inner) as url,
        ):
            refused = Server("refused", "http", url=f"{url}/mcp")
            nowhere = Server("nowhere", "http", url=f"{url}/other", headers={"a": "b"})
            key = {"Authorization": "Bearer token-of-everybody"}
            right = Server("right", "http", url=f"{url}/mcp", headers=key)
            async with gateway(refused, nowhere, right) as made:
                errors = {name: u.error for name, u in made.pool.upstreams.items()}
                why = "refuses us (HTTP 401): check its `headers`, or set `oauth: true`"
                assert errors == {"refused": why, "nowhere": why, "right": None}
                assert "right__one__echo" in made.pool.stock.routes

    run(main)
