"""Access tokens under profiles: each is a resource of its own, and grants may be for some alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from support.gateways import gateway, run
from support.issuers import Issuer, issuer
from support.machine import free_port
from toolfold.config.oauth_settings import Grant, OAuthSettings
from toolfold.config.served_profiles import ServedProfile
from toolfold.runtime import Registry
from toolfold.serve.http.app import make_app
from toolfold.serve.http.listening import Listening
from toolfold.sources.source import Source

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    },
}  # fmt: skip
GRANTS = (Grant("tools"), Grant("here", profiles=("here",)), Grant("more", ("own__send",)))
PROFILES = (ServedProfile("here", allow=("own__weigh", "own__send")), ServedProfile("there"))


def parcels() -> Source:
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


@asynccontextmanager
async def served(made: Issuer, **oauth: Any) -> AsyncIterator[tuple[str, httpx2.AsyncClient]]:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    values: dict[str, Any] = {"issuer": made.url, "resource": url, "grants": GRANTS, **oauth}
    serve = {"oauth": OAuthSettings(**values)}
    async with gateway(serve=serve, sources=[parcels()], profiles=PROFILES) as running:
        app = make_app(running, "127.0.0.1")
        listening = Listening(app, ("127.0.0.1", port), running.config.serve)
        serving = asyncio.create_task(listening.serve())
        await listening.address()
        try:
            async with httpx2.AsyncClient(timeout=10) as http:
                yield url, http
        finally:
            listening.stop()
            await serving


def with_issuer(main: Callable[[Issuer], Any]) -> None:
    with issuer() as made:
        run(lambda: main(made))


async def greeted(http: httpx2.AsyncClient, address: str, token: str = "") -> httpx2.Response:
    headers = {"accept": "application/json, text/event-stream"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    return await http.post(address, json=HELLO, headers=headers)


def test_each_profile_is_a_resource_of_its_own_whether_it_is_there_or_not() -> None:
    async def main(made: Issuer) -> None:
        async with served(made) as (url, http):
            origin = url.removesuffix("/mcp")
            for path in ("", "/here", "/never-was"):
                refused = await greeted(http, f"{url}{path}")
                where = f"{origin}/.well-known/oauth-protected-resource/mcp{path}"
                assert refused.status_code == 401
                assert f'resource_metadata="{where}"' in refused.headers["www-authenticate"]
                page = await http.get(where)
                assert page.json()["resource"] == f"{url}{path}"
                assert page.json()["authorization_servers"] == [made.url]
            for odd in ("/here/", "/here/x", "/a%2Fb", "/h%20"):
                page = await http.get(f"{origin}/.well-known/oauth-protected-resource/mcp{odd}")
                assert page.status_code == 404

    with_issuer(main)


def test_a_token_for_one_profile_is_worth_nothing_under_another() -> None:
    async def main(made: Issuer) -> None:
        async with served(made) as (url, http):
            own, whole = made.token(aud=f"{url}/here"), made.token(aud=url)
            paths = ("", "/here", "/there", "/never-was")
            found = [(await greeted(http, f"{url}{path}", own)).status_code for path in paths]
            assert found == [401, 200, 401, 401]
            found = [(await greeted(http, f"{url}{path}", whole)).status_code for path in paths]
            assert found == [200, 200, 200, 404]

    with_issuer(main)


def test_where_an_audience_is_named_it_is_the_only_one() -> None:
    async def main(made: Issuer) -> None:
        async with served(made, audience=("api://tools",)) as (url, http):
            for aud, status in (("api://tools", 200), (f"{url}/here", 401), (url, 401)):
                answer = await greeted(http, f"{url}/here", made.token(aud=aud))
                assert answer.status_code == status

    with_issuer(main)


def test_a_grant_for_one_profile_counts_there_alone() -> None:
    async def main(made: Issuer) -> None:
        async with served(made) as (url, http):
            limited = made.token(aud=url, scope="here")
            paths = ("", "/here", "/there", "/never-was")
            found = [await greeted(http, f"{url}{path}", limited) for path in paths]
            assert [answer.status_code for answer in found] == [404, 200, 404, 404]
            assert found[2].content == found[3].content
            for path, tools in (("/here", 2), ("/there", 1)):
                token = made.token(aud=url, scope="here more")
                headers = {"authorization": f"Bearer {token}"}
                async with (
                    httpx2.AsyncClient(headers=headers, timeout=10) as own,
                    Client(streamable_http_client(f"{url}{path}", http_client=own)) as c,
                ):
                    assert len((await c.list_tools()).tools) == tools

    with_issuer(main)


class _Storage:
    tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None: ...


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
def test_the_official_client_asks_for_a_token_for_the_profile() -> None:
    async def main(made: Issuer) -> None:
        async with served(made, scopes=("here",)) as (url, _):
            address = f"{url}/here"
            provider = ClientCredentialsOAuthProvider(
                address, _Storage(), "robot", "secret-of-the-robot", issuer=made.url
            )
            async with (
                httpx2.AsyncClient(auth=provider, timeout=httpx2.Timeout(30, read=None)) as http,
                Client(streamable_http_client(address, http_client=http)) as client,
            ):
                assert len((await client.list_tools()).tools) == 2
            assert [asked["resource"] for asked in made.given] == [address]

    with_issuer(main)
