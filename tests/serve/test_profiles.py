"""Profiles over HTTP: each at a path of its own, narrower than its token, and nobody else's."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from support.gateways import client, run, said, until
from support.reloaded import Reloaded, entry, reloaded, write
from toolfold.config import load_gateway
from toolfold.serve.gateway import Gateway
from toolfold.serve.http.app import make_app
from toolfold.serve.principals import LOCAL, Principal
from toolfold.sources.function_modules import load_functions

WIDE, NARROW = "wide-" + "1" * 32, "narrow-" + "2" * 32
SERVERS = {"one": entry("one"), "two": entry("two", allow=["echo", "pid", "wipe"])}
MODULE = """
import asyncio
from toolfold.runtime import Registry

registry = Registry()


@registry.tool(read_only=True)
def echo(x: str = "") -> str:
    \"\"\"Say a text back.\"\"\"
    return f"NAME:{x}"


@registry.tool
def pid() -> str:
    \"\"\"Tell the process id.\"\"\"
    return "0"


@registry.tool
async def LAST(x: str = "0") -> str:
    \"\"\"Destroy everything.\"\"\"
    await asyncio.sleep(float(x))
    return "slept"
"""
PROFILES: dict[str, Any] = {
    "first": {"servers": ["one"]},
    "reads": {"read_only": True, "deny": ["*pid"]},
    "folds": {"tools": {"tool_search": {"enabled": "on", "listing": "names"}}},
}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "0"},
    },
}


def token(name: str, value: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "sha256": hashlib.sha256(value.encode()).hexdigest(), **more}


def with_functions(folder: Path, profiles: Any) -> dict[str, Any]:
    """Blocks of a file with two modules of functions that are named like our servers."""
    for name, last in (("one", "slow"), ("two", "wipe")):
        module = MODULE.replace("NAME", name).replace("LAST", last)
        (folder / f"{name}.py").write_text(module, "utf-8")
    return {"functions": {"one": "./one.py", "two": "./two.py"}, "profiles": profiles}


@asynccontextmanager
async def served(
    folder: Path, profiles: Any = PROFILES, servers: dict[str, Any] | None = None, **serve: Any
) -> AsyncIterator[tuple[Reloaded, str]]:
    """A gateway with profiles on a port, over functions where no servers are given."""
    blocks = {"profiles": profiles} if servers else with_functions(folder, profiles)
    async with reloaded(folder, servers or {}, blocks=blocks, **serve) as place:
        app = make_app(place.gateway, "127.0.0.1", verbs=place.verbs)
        settings = uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=1)
        server = uvicorn.Server(settings)
        serving = asyncio.create_task(server.serve())
        await until(lambda: server.started, 20)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield place, f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await serving


def http(value: str = "") -> httpx2.AsyncClient:
    headers = {"authorization": f"Bearer {value}"} if value else {}
    return httpx2.AsyncClient(headers=headers, timeout=30)


def at(address: str, http_client: httpx2.AsyncClient, mode: str, **more: Any) -> Client:
    return Client(streamable_http_client(address, http_client=http_client), mode=mode, **more)


async def names(c: Client) -> set[str]:
    return {tool.name for tool in (await c.list_tools()).tools}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_each_profile_shows_its_own_part_and_no_path_shows_another(
    tmp_path: Path, mode: str
) -> None:
    async def main() -> None:
        async with served(tmp_path, servers=SERVERS) as (_, url), http() as h:
            async with at(f"{url}/mcp", h, mode) as c:
                assert await names(c) == {
                    *("one__echo", "one__slow", "one__pid", "two__echo", "two__pid", "two__wipe"),
                }
            async with at(f"{url}/mcp/first", h, mode) as c:
                assert await names(c) == {"one__echo", "one__slow", "one__pid"}
                assert (await c.call_tool("two__echo", {"x": "a"})).is_error
                assert said(await c.call_tool("one__echo", {"x": "a"})) == "one:a"
                assert {p.name for p in (await c.list_prompts()).prompts} == {"one__greet"}
                found = (await c.list_resources()).resources
                assert {str(r.uri) for r in found} == {"odd:///shared", "odd:///one:"}
                with pytest.raises(MCPError):
                    await c.read_resource("toolfold:two:odd:///shared")
                with pytest.raises(MCPError):
                    await c.get_prompt("two__greet", {"who": "me"})
            async with at(f"{url}/mcp/reads", h, mode) as c:
                assert await names(c) == {"one__echo", "two__echo"}
                assert (await c.call_tool("two__wipe", {})).is_error
            async with at(f"{url}/mcp/folds", h, mode) as c:
                assert await names(c) == {"tool_search", "tool_describe", "tool_call"}
                assert "those that its description names" in (c.instructions or "")

    run(main, 60)


def test_a_search_under_a_profile_finds_counts_and_suggests_nothing_else(tmp_path: Path) -> None:
    profiles = {"p": {"servers": ["one"], "tools": {"tool_search": {"enabled": "on"}}}}
    asks = [
        *(("tool_search", {"query": q}) for q in ("destroy everything", "two__wipe", "process id")),
        *(("tool_describe", {"names": [name]}) for name in ("two__wipe", "one__pid", "wipe")),
        ("tool_call", {"name": "two__wipe", "arguments": {}}),
        ("two__echo", {"x": "a"}),
    ]

    async def answers(made: Gateway, who: Principal) -> list[str]:
        async with client(made, who=who) as c:
            return [str(await names(c)), *[said(await c.call_tool(*ask)) for ask in asks]]

    async def main() -> None:
        blocks = with_functions(tmp_path, profiles)
        async with reloaded(tmp_path, {}, blocks=blocks) as place:
            found = await answers(place.gateway, Principal("local", profile="p"))
            under = place.gateway.config.under("p")
        # As if there were nothing else.
        async with Gateway(under, sources=[*map(load_functions, under.functions)]) as alone:
            assert await answers(alone, LOCAL) == found

    run(main, 60)


def test_a_profile_never_widens_what_a_token_has(tmp_path: Path) -> None:
    narrow = token("narrow", NARROW, allow=["@two"], deny=["*wipe"])

    async def main() -> None:
        async with served(tmp_path, tokens=[narrow]) as (_, url), http(NARROW) as h:
            async with at(f"{url}/mcp/first", h, "auto") as c:
                assert await names(c) == set()
            async with at(f"{url}/mcp/folds", h, "auto") as c:
                assert (await c.call_tool("two__wipe", {})).is_error

    run(main, 60)


def test_a_token_for_some_profiles_asks_there_and_nowhere_else(tmp_path: Path) -> None:
    tokens = [token("wide", WIDE), token("narrow", NARROW, profiles=["first"])]

    async def main() -> None:
        async with served(tmp_path, tokens=tokens) as (_, url), http(NARROW) as h:
            async with at(f"{url}/mcp/first", h, "auto") as c:
                assert "one__echo" in await names(c)
            found = {
                path: await h.post(f"{url}{path}", json=HELLO, headers=HEADERS)
                for path in ("/mcp", "/mcp/", "/mcp/reads", "/mcp/never-was", "/metrics")
            }
            assert {path: each.status_code for path, each in found.items()} == dict.fromkeys(
                found, 404
            )
            # Another's and none at all read the same.
            assert found["/mcp/reads"].content == found["/mcp/never-was"].content
            assert found["/mcp/reads"].headers.keys() == found["/mcp/never-was"].headers.keys()

    run(main, 60)


def test_without_a_token_every_path_reads_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, tokens=[token("wide", WIDE)]) as (_, url), http() as h:
            answers = [
                await h.post(f"{url}{path}", json=HELLO, headers=HEADERS)
                for path in ("/mcp", "/mcp/first", "/mcp/never-was", "/mcp/first/more")
            ]
            assert {answer.status_code for answer in answers} == {401}
            assert len({answer.content for answer in answers}) == 1

    run(main, 60)


ODD_PATHS = [
    "/mcp/first/", "/mcp/first/x", "/mcp/../mcp/first", "/mcp/./first", "/mcp//first",
    "//mcp/first", "/mcp/FIRST", "/mcp/%66irst", "/mcp%2Ffirst", "/mcp%2ffirst",
    "/mcp/first%00", "/mcp/first%2F..%2Freads", "/mcp/first;x", "/mcp/first%20", "/mcp/..",
    "/mcp/%2e%2e/mcp", "/mcp/first\\", "/mcp/*", "/mcp/{profile}", "/mcp/first#x",
]  # fmt: skip


def asked(url: str, path: str) -> bytes:
    """What a greeting at a path is answered with; a client's library would tidy the path up."""
    body = json.dumps(HELLO).encode()
    host, _, port = url.removeprefix("http://").partition(":")
    lines = [f"POST {path} HTTP/1.1", f"host: {host}:{port}", "connection: close"]
    lines += [f"{key}: {value}" for key, value in HEADERS.items()]
    lines += [f"content-length: {len(body)}", "", ""]
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall("\r\n".join(lines).encode() + body)
        return b"".join(iter(lambda: line.recv(65536), b""))


def test_a_path_that_is_not_a_profiles_own_to_the_letter_is_not_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as (_, url):
            assert b" 200 " in (await asyncio.to_thread(asked, url, "/mcp/first")).split(b"\r")[0]
            for path in ODD_PATHS:
                answer = await asyncio.to_thread(asked, url, path)
                assert answer.split(b" ")[1] in (b"404", b"400"), (path, answer)
                assert b"mcp-session-id" not in answer.lower()

    run(main, 60)


def test_a_session_belongs_to_its_profile_and_to_its_token(tmp_path: Path) -> None:
    tokens = [token("wide", WIDE), token("narrow", NARROW)]

    async def main() -> None:
        async with served(tmp_path, tokens=tokens) as (_, url), http(WIDE) as h, http(NARROW) as n:
            opened = await h.post(f"{url}/mcp/first", json=HELLO, headers=HEADERS)
            own = {**HEADERS, "mcp-session-id": opened.headers["mcp-session-id"]}
            listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await h.post(f"{url}/mcp/first", json=ready, headers=own)
            for asks, path in (
                (h, "/mcp"), (h, "/mcp/reads"), (n, "/mcp/first"), (n, "/mcp"), (n, "/mcp/reads"),
            ):  # fmt: skip
                for method in ("POST", "GET", "DELETE"):
                    sent = listing if method == "POST" else None
                    answer = await asks.request(method, f"{url}{path}", json=sent, headers=own)
                    assert answer.status_code == 404, (path, method)
            answer = await h.post(f"{url}/mcp/first", json=listing, headers=own)
            assert answer.status_code == 200
            assert "one__echo" in answer.text
            assert "two__" not in answer.text

    run(main, 60)


def test_naming_a_session_under_another_profile_makes_no_room_for_more(tmp_path: Path) -> None:
    async def main() -> None:
        tokens = [token("wide", WIDE)]
        async with (
            served(tmp_path, tokens=tokens, sessions_per_token=2) as (_, url),
            http(WIDE) as h,
        ):
            statuses: list[int] = []
            for _ in range(4):
                opened = await h.post(f"{url}/mcp/first", json=HELLO, headers=HEADERS)
                statuses.append(opened.status_code)
                if opened.status_code == 200:
                    own = {**HEADERS, "mcp-session-id": opened.headers["mcp-session-id"]}
                    await h.delete(f"{url}/mcp/reads", headers=own)
            assert statuses == [200, 200, 429, 429]

    run(main, 60)


def test_a_conversation_without_a_session_belongs_to_its_profile_too(tmp_path: Path) -> None:
    profiles = {name: {"tools": {"tool_search": {"enabled": "on", "strategy": "reveal"}}}
                for name in ("a", "b")}  # fmt: skip

    async def main() -> None:
        async with served(tmp_path, profiles) as (_, url), http() as h:
            h.headers["toolfold-conversation"] = "0123456789abcdef"
            async with at(f"{url}/mcp/a", h, "auto") as a, at(f"{url}/mcp/b", h, "auto") as b:
                await a.call_tool("tool_search", {"query": "say a text back"})
                assert "one__echo" in await names(a)
                assert "one__echo" not in await names(b)
        async with (
            served(tmp_path, profiles) as (_, url),
            http() as h,
            at(f"{url}/mcp/a", h, "auto") as a,
            at(f"{url}/mcp/b", h, "auto") as b,
        ):
            for _ in range(2):  # their cookies do not take each other's place
                await a.call_tool("tool_search", {"query": "say a text back"})
                assert "one__echo" not in await names(b)
                assert "one__echo" in await names(a)

    run(main, 60)


def test_a_reload_adds_changes_and_removes_profiles_and_touches_no_other(tmp_path: Path) -> None:
    heard: dict[str, list[str]] = {"first": [], "reads": []}

    def listener(name: str) -> Any:
        async def listen(message: Any) -> None:
            heard[name].append(type(message).__name__)

        return listen

    async def main() -> None:
        async with served(tmp_path) as (place, url), http() as h:
            first = at(f"{url}/mcp/first", h, "legacy", message_handler=listener("first"))
            reads = at(f"{url}/mcp/reads", h, "legacy", message_handler=listener("reads"))
            async with reads, at(f"{url}/mcp/folds", h, "legacy") as gone, first:
                before = await names(reads)
                assert len(await names(first)) == 3
                report = await place.ask("status")
                assert {"name": "first", "clients": 1} in report["profiles"]
                await gone.list_tools()
                changed = {**PROFILES, "first": {"servers": ["two"]}, "new": {"deny": ["*"]}}
                del changed["folds"]
                place.write({}, with_functions(tmp_path, changed))
                told = await place.ask("reload")

                assert told["profiles"] == ["first", "folds", "new"]
                assert told["widened"] == [
                    "profile 'first' has 'two'", "profile 'new' is new",
                ]  # fmt: skip
                await until(lambda: "ToolListChangedNotification" in heard["first"])
                assert await names(first) == {"two__echo", "two__pid", "two__wipe"}
                assert (await first.call_tool("one__echo", {"x": "a"})).is_error
                assert await names(reads) == before
                assert heard["reads"] == []
                answer = await h.post(f"{url}/mcp/folds", json=HELLO, headers=HEADERS)
                assert answer.status_code == 404
                await until(lambda: len(place.gateway.clients) == 2)
                async with at(f"{url}/mcp/new", h, "auto") as c:
                    assert await names(c) == set()

    run(main, 60)


def test_a_broken_profile_keeps_all_as_it_was(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as (place, url), http() as h:
            place.write({}, with_functions(tmp_path, {"first": {"servers": ["three"]}}))
            with pytest.raises(Exception, match="three"):
                await place.ask("reload")
            async with at(f"{url}/mcp/first", h, "auto") as c:
                assert "one__echo" in await names(c)

    run(main, 60)


@pytest.mark.parametrize("how", ["limited", "revoked", "profile gone"])
def test_what_is_open_under_a_profile_ends_when_its_token_is_no_longer_for_it(
    tmp_path: Path, how: str
) -> None:
    async def main() -> None:
        tokens = [token("wide", WIDE), token("narrow", NARROW)]
        async with served(tmp_path, tokens=tokens) as (place, url), http(WIDE) as h:
            opened = await h.post(f"{url}/mcp/first", json=HELLO, headers=HEADERS)
            own = {**HEADERS, "mcp-session-id": opened.headers["mcp-session-id"]}
            call = {
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "one__slow", "arguments": {"x": "30"}},
            }  # fmt: skip
            slow = asyncio.create_task(h.post(f"{url}/mcp/first", json=call, headers=own))
            await until(lambda: place.gateway.pool.in_flight)
            left = [token("wide", WIDE, profiles=["reads"]), token("narrow", NARROW)]
            profiles = dict(PROFILES)
            if how == "revoked":
                left = left[1:]
            elif how == "profile gone":
                left, profiles = tokens, {"reads": PROFILES["reads"]}
            place.write({}, with_functions(tmp_path, profiles), tokens=left)
            await place.ask("reload")

            answer = await slow  # it has ended, long before it would have by itself
            assert "slept" not in answer.text
            again = await h.post(f"{url}/mcp/first", json=call, headers=own)
            assert again.status_code == (401 if how == "revoked" else 404)
            await until(lambda: not len(place.gateway.clients))
            await until(lambda: not place.gateway.pool.in_flight)

    run(main, 60)


def test_over_standard_input_a_profile_is_all_there_is(tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / "toolfold.json"
        write(file, {}, with_functions(tmp_path, PROFILES))
        under = load_gateway(file).under("first")
        sources = [*map(load_functions, under.functions)]
        async with Gateway(under, sources=sources) as made, client(made, who=LOCAL) as c:
            assert [source.name for source in sources] == ["one"]
            assert await names(c) == {"one__echo", "one__slow", "one__pid"}

    run(main, 60)
