"""An issuer's tokens under a configuration that changes: what they are worth from then on."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from support.gateways import run, said, until
from support.issuers import RESOURCE, Issuer, issuer
from support.machine import free_port
from support.reloaded import Reloaded, entry, reloaded
from toolfold.serve.http.app import make_app
from toolfold.serve.http.listening import Listening

OWN = "own-" + "1" * 32
TOKENS = [{"name": "own", "sha256": hashlib.sha256(OWN.encode()).hexdigest()}]


def oauth(made: Issuer, *grants: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "issuer": made.url, "resource": RESOURCE, "leeway": 0, "refetch": 0,
        "grants": list(grants or [{"name": "tools"}]), **more,
    }  # fmt: skip


class Place:
    """A gateway at an address, whose `serve` block can be written anew."""

    def __init__(self, reloaded: Reloaded, url: str) -> None:
        self._reloaded = reloaded
        self.url = url

    @property
    def calls(self) -> int:
        """How many are under way."""
        return self._reloaded.gateway.pool.in_flight

    async def reload(self, **serve: Any) -> Any:
        self._reloaded.write({"one": entry("one")}, **serve)
        return await self._reloaded.ask("reload")

    @asynccontextmanager
    async def client(self, token: str, mode: str = "legacy", **more: Any) -> AsyncIterator[Client]:
        headers = {"authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode, **more) as client,
        ):
            yield client

    async def status(self, token: str) -> int:
        headers = {"authorization": f"Bearer {token}", "mcp-session-id": "none"}
        async with httpx2.AsyncClient(headers=headers) as http:
            return (await http.post(self.url, json={})).status_code


@asynccontextmanager
async def served(folder: Path, **serve: Any) -> AsyncIterator[Place]:
    port = free_port()
    async with reloaded(folder, {"one": entry("one")}, **serve) as place:
        app = make_app(place.gateway, "127.0.0.1", verbs=place.verbs)
        listening = Listening(app, ("127.0.0.1", port), place.gateway.config.serve)
        serving = asyncio.create_task(listening.serve())
        await listening.address()
        try:
            yield Place(place, f"http://127.0.0.1:{port}/mcp")
        finally:
            listening.stop()
            await serving


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_grant_that_is_narrower_counts_for_open_sessions_at_once(
    tmp_path: Path, mode: str
) -> None:
    heard: list[str] = []

    async def listen(message: Any) -> None:
        heard.append(type(message).__name__)

    async def main() -> None:
        with issuer() as made:
            async with (
                served(tmp_path, oauth=oauth(made)) as place,
                place.client(made.token(), mode, message_handler=listen) as client,
            ):
                assert "one__pid" in await names(client)
                slow = asyncio.create_task(client.call_tool("one__slow", {"x": "0.5"}))
                asked = len(made.asked)
                await until(lambda: place.calls == 1)
                told = await place.reload(oauth=oauth(made, {"name": "tools", "allow": ["*echo"]}))

                assert (told["settings"], told["widened"]) == (["serve.oauth"], [])
                assert (await client.call_tool("one__pid", {})).is_error
                if mode == "legacy":
                    await until(lambda: "ToolListChangedNotification" in heard)
                assert said(await client.call_tool("one__echo", {"x": "a"})) == "one:a"
                assert await names(client) == {"one__echo"}
                assert said(await slow) == "slept", "calls under way end"
                assert len(made.asked) == asked, "the keys of the same issuer stay known"

                await place.reload(oauth=oauth(made, {"name": "others"}))
                assert await place.status(made.token()) == 403

    run(main, 60)


def test_a_bearers_stream_goes_on_as_long_as_there_is_a_grant(tmp_path: Path) -> None:
    async def main() -> None:
        with issuer() as made:
            async with served(tmp_path, oauth=oauth(made), tokens=TOKENS) as place:
                ended: dict[str, bool] = {}

                async def listen(token: str, session: str) -> None:
                    headers = {
                        "authorization": f"Bearer {token}",
                        "accept": "text/event-stream",
                        "mcp-session-id": session,
                    }
                    async with (
                        httpx2.AsyncClient(headers=headers, timeout=20) as http,
                        http.stream("GET", place.url) as stream,
                    ):
                        assert stream.status_code == 200
                        ended[token] = False
                        async for _ in stream.aiter_raw():
                            pass
                        ended[token] = True

                tokens = made.token(), OWN
                streams = [
                    asyncio.create_task(listen(token, await _session(place.url, token)))
                    for token in tokens
                ]
                await until(lambda: len(ended) == 2)
                await place.reload(
                    oauth=oauth(made, {"name": "tools", "read_only": True}), tokens=TOKENS
                )
                assert said(await _called(place, tokens[0])) == "one:a", "the door has changed"
                assert ended == {tokens[0]: False, OWN: False}
                await place.reload(oauth=oauth(made, {"name": "others"}), tokens=TOKENS)
                await until(lambda: ended[tokens[0]])
                assert ended == {tokens[0]: True, OWN: False}
                for stream in streams:
                    stream.cancel()
                await asyncio.wait(streams)

    run(main, 60)


async def _called(place: Place, token: str) -> Any:
    async with place.client(token) as client:
        return await client.call_tool("one__echo", {"x": "a"})


async def _session(url: str, token: str) -> str:
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"},
        },
    }  # fmt: skip
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    async with httpx2.AsyncClient(headers=headers) as http:
        session = (await http.post(url, json=hello)).headers["mcp-session-id"]
        await http.post(url, json=ready, headers={"mcp-session-id": session})
        return session


def test_an_issuer_comes_goes_and_is_changed_while_the_gateway_runs(tmp_path: Path) -> None:
    async def main() -> None:
        with issuer() as first, issuer() as second:
            async with served(tmp_path, tokens=TOKENS) as place:
                assert await place.status(first.token()) == 401
                told = await place.reload(oauth=oauth(first), tokens=TOKENS)
                assert told["widened"] == [f"access tokens of {first.url!r} are taken"]
                assert await place.status(first.token()) == 404, "no such session"
                assert await place.status(OWN) == 404

                session = await _session(place.url, first.token())
                await place.reload(oauth=oauth(second), tokens=TOKENS)
                assert await place.status(first.token()) == 401
                assert await place.status(second.token()) == 404
                await place.reload(oauth=oauth(first), tokens=TOKENS)
                headers = {"authorization": f"Bearer {first.token()}", "mcp-session-id": session}
                async with httpx2.AsyncClient(headers=headers) as http:
                    gone = await http.delete(place.url)
                assert gone.status_code == 404, "what its bearers had open has ended"

                await place.reload(tokens=TOKENS)
                assert await place.status(first.token()) == 401
                assert await place.status(OWN) == 404

    run(main, 60)
