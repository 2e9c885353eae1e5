"""Bearers of access tokens at a gateway that listens: their sessions, tools and records."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from support.gateways import ERAS, gateway, run, said, until
from support.issuers import Issuer, issuer
from support.machine import free_port
from toolfold.config.oauth_settings import Grant, OAuthSettings
from toolfold.runtime import Registry
from toolfold.serve.http.app import make_app
from toolfold.serve.http.listening import Listening
from toolfold.serve.observe.audit import AuditLog
from toolfold.sources.source import Source

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

GRANTS = (
    Grant("readers", allow=("own__weigh",)),
    Grant("senders", allow=("own__send",)),
    Grant("tools"),
)
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "a", "version": "1"},
}


def parcels() -> Source:
    """A source `own` with two functions."""
    registry = Registry()

    @registry.tool
    def weigh(parcel: str) -> str:
        """Weigh a parcel."""
        return f"{parcel} is light"

    @registry.tool
    def send(parcel: str) -> str:
        """Send a parcel away."""
        return f"{parcel} is away"

    return registry.prefixed("own")


class Served:
    """A gateway at an address, spoken to by hand."""

    def __init__(self, made: Issuer, port: int, http: httpx2.AsyncClient) -> None:
        self.issuer = made
        self.url = f"http://127.0.0.1:{port}/mcp"
        self._http = http

    def token(self, kid: str = "one", **claims: Any) -> str:
        return self.issuer.token(kid, aud=self.url, **claims)

    async def post(
        self, token: str, method: str, params: Any = None, session: str | None = None
    ) -> httpx2.Response:
        headers = {
            "accept": "application/json, text/event-stream",
            "authorization": f"Bearer {token}",
            **({} if session is None else {"mcp-session-id": session}),
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return await self._http.post(self.url, json=body, headers=headers)

    async def opened(self, token: str) -> str:
        """Open a session and return its id."""
        answer = await self.post(token, "initialize", HELLO)
        assert answer.status_code == 200, answer.text
        return answer.headers["mcp-session-id"]

    async def tools(self, token: str, session: str) -> list[str]:
        answer = await self.post(token, "tools/list", session=session)
        assert answer.status_code == 200, answer.text
        (line,) = [x[6:] for x in answer.text.splitlines() if x.startswith("data: {")]
        return [tool["name"] for tool in json.loads(line)["result"]["tools"]]


@asynccontextmanager
async def served(made: Issuer, *observers: Any, **oauth: Any) -> AsyncIterator[Served]:
    port = free_port()
    values: dict[str, Any] = {
        "issuer": made.url,
        "resource": f"http://127.0.0.1:{port}/mcp",
        "grants": GRANTS,
        "scopes": ("readers",),
        "leeway": 0,
        "refetch": 0,
        **oauth,
    }
    serve = {"oauth": OAuthSettings(**values)}
    async with gateway(serve=serve, sources=[parcels()], observers=observers) as running:
        app = make_app(running, "127.0.0.1")
        listening = Listening(app, ("127.0.0.1", port), running.config.serve)
        serving = asyncio.create_task(listening.serve())
        await listening.address()
        try:
            async with httpx2.AsyncClient(timeout=10) as http:
                yield Served(made, port, http)
        finally:
            listening.stop()
            await serving


def test_a_session_is_its_subjects_and_nobody_elses() -> None:
    async def main(made: Issuer) -> None:
        async with served(made) as at:
            session = await at.opened(at.token())

            stolen = await at.post(at.token(sub="mallory"), "tools/list", session=session)
            assert stolen.status_code == 404
            renewed = at.token(exp=int(time.time()) + 900)
            assert await at.tools(renewed, session) == ["own__weigh", "own__send"]

    with issuer() as made:
        run(lambda: main(made))


def test_a_token_that_ends_in_the_middle_of_a_session_is_refused_from_then_on() -> None:
    async def main(made: Issuer) -> None:
        async with served(made) as at:
            short = at.token(exp=int(time.time()) + 1)
            session = await at.opened(at.token())
            await until(lambda: _is_over(short))
            refused = await at.post(short, "tools/list", session=session)
            assert refused.status_code == 401
            assert 'error="invalid_token"' in refused.headers["www-authenticate"]
            assert await at.tools(at.token(), session)

    with issuer() as made:
        run(lambda: main(made))


@pytest.mark.parametrize("exp", ["soon", "never"])
def test_a_stream_ends_with_the_token_that_it_was_opened_with(exp: str) -> None:
    async def main(made: Issuer) -> None:
        async with served(made) as at:
            session = await at.opened(at.token())
            ends = int(time.time()) + 2 if exp == "soon" else 10**400
            headers = {
                "authorization": f"Bearer {at.token(exp=ends)}",
                "accept": "text/event-stream",
                "mcp-session-id": session,
            }
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                http.stream("GET", at.url) as stream,
            ):
                assert stream.status_code == 200
                if exp == "soon":
                    async for _ in stream.aiter_raw():
                        pass
                    assert ends <= time.time() < ends + 5
            assert await at.tools(at.token(), session), "the session goes on"

    with issuer() as made:
        run(lambda: main(made))


def _is_over(token: str) -> bool:
    import jwt

    claims = jwt.decode(token, options={"verify_signature": False})
    return time.time() > claims["exp"]


def test_a_session_holds_what_the_token_of_each_request_is_worth() -> None:
    async def main(made: Issuer) -> None:
        async with served(made) as at:
            session = await at.opened(at.token(scope="tools"))
            assert await at.tools(at.token(scope="tools"), session) == ["own__weigh", "own__send"]

            assert await at.tools(at.token(scope="readers"), session) == ["own__weigh"]
            sending = {"name": "own__send", "arguments": {"parcel": "x"}}
            hidden = await at.post(at.token(scope="readers"), "tools/call", sending, session)
            assert "x is away" not in hidden.text
            refused = await at.post(at.token(scope="other"), "tools/list", session=session)
            assert refused.status_code == 403
            assert await at.tools(at.token(scope="senders"), session) == ["own__send"]

    with issuer() as made:
        run(lambda: main(made))


def test_a_key_is_rotated_while_the_gateway_runs() -> None:
    async def main(made: Issuer) -> None:
        async with served(made) as at:
            old = at.token()
            session = await at.opened(old)
            made.publish("two")

            assert await at.tools(at.token(kid="two"), session)
            refused = await at.post(old, "tools/list", session=session)
            assert refused.status_code == 401

    with issuer() as made:
        run(lambda: main(made))


def test_while_the_issuer_is_away_known_keys_count_and_unknown_ones_are_to_be_tried_again() -> None:
    async def main(made: Issuer) -> None:
        made.is_away = True
        async with served(made) as at:
            early = await at.post(at.token(), "initialize", HELLO)
            assert (early.status_code, early.headers["retry-after"]) == (503, "1")

            made.is_away = False
            session = await at.opened(at.token())

            made.is_away = True
            assert await at.tools(at.token(), session)
            new = await at.post(at.token(kid="two"), "tools/list", session=session)
            assert new.status_code == 503
            assert await at.tools(at.token(), session)

    with issuer() as made:
        run(lambda: main(made))


class _Storage:
    """Keeps a client's token in memory."""

    tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None: ...


@pytest.mark.parametrize("mode", ERAS)
def test_the_official_client_finds_the_issuer_gets_a_token_and_calls_a_tool(
    mode: str, tmp_path: Path
) -> None:
    audit = AuditLog(tmp_path / "audit.jsonl")

    async def main(made: Issuer) -> None:
        async with served(made, audit) as at:
            storage = _Storage()
            provider = ClientCredentialsOAuthProvider(
                at.url, storage, "robot", "secret-of-the-robot", issuer=made.url
            )
            async with (
                httpx2.AsyncClient(auth=provider, timeout=httpx2.Timeout(30, read=None)) as http,
                Client(streamable_http_client(at.url, http_client=http), mode=mode) as client,
            ):
                listed = (await client.list_tools()).tools
                assert [tool.name for tool in listed] == ["own__weigh"]
                answer = await client.call_tool("own__weigh", {"parcel": "a feather"})
                assert said(answer) == "a feather is light"
                assert (await client.call_tool("own__send", {"parcel": "it"})).is_error
            (asked,) = made.given
            assert (asked["resource"], asked["scope"]) == (at.url, "readers")
            assert storage.tokens is not None
            written = audit.path.read_text("utf-8")
            assert json.loads(written.splitlines()[0])["principal"] == "oauth:robot"
            assert storage.tokens.access_token not in written

    with issuer() as made:
        run(lambda: main(made))
