"""`toolfold.sources.mcp.oauth`: signing in at a server with OAuth, against a real flow."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import mcp_types as t
import pytest
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.lowlevel import Server as LowLevelServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl

from support.gateways import client, gateway, run, said, until
from support.machine import free_port
from toolfold.sources.mcp import oauth
from toolfold.sources.mcp.server import Server

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")


class Issuer:
    """An authorization server that lets everybody in at once."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: Any, params: AuthorizationParams) -> str:
        code = secrets.token_urlsafe(20)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=[],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, code: str) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(self, client: Any, code: AuthorizationCode) -> OAuthToken:
        del self.codes[code.code]
        token = secrets.token_urlsafe(20)
        self.tokens[token] = AccessToken(
            token=token, client_id=client.client_id, scopes=[], resource=code.resource
        )
        return OAuthToken(access_token=token, token_type="Bearer", expires_in=3600)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def load_refresh_token(self, client: Any, token: str) -> RefreshToken | None:
        return None


async def list_tools(context: Any, params: Any) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[t.Tool(name="hello", input_schema={"type": "object"})])


async def call_tool(context: Any, params: Any) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text="signed in")])


Browse = Callable[[str], None]


@asynccontextmanager
async def guarded_server(issuer: Issuer) -> AsyncGenerator[Server]:
    """A server that wants everybody to sign in at an issuer."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = LowLevelServer("far", on_list_tools=list_tools, on_call_tool=call_tool)
    app = server.streamable_http_app(
        auth_server_provider=issuer,  # type: ignore[arg-type]
        token_verifier=issuer,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(url),
            resource_server_url=AnyHttpUrl(f"{url}/mcp"),
            client_registration_options=ClientRegistrationOptions(enabled=True),
        ),
    )
    uv = uvicorn.Server(
        uvicorn.Config(app, port=port, log_config=None, timeout_graceful_shutdown=1)
    )
    serving = asyncio.create_task(uv._serve())  # pyright: ignore[reportPrivateUsage]
    await until(lambda: uv.started)
    try:
        yield Server("far", "http", url=f"{url}/mcp", oauth=True)
    finally:
        uv.should_exit = True
        await serving


def browser(monkeypatch: pytest.MonkeyPatch, browse: Browse) -> None:
    monkeypatch.setattr(oauth.SignIn.__init__, "__defaults__", (browse,))


def test_a_person_signs_in_once_and_the_token_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def browse(url: str) -> None:
        opened.append(url)
        httpx2.get(url, follow_redirects=True)

    browser(monkeypatch, browse)

    async def main() -> None:
        issuer = Issuer()
        async with guarded_server(issuer) as far:
            for _ in range(2):
                async with (
                    gateway(far, auth=oauth.signer(tmp_path)) as made,
                    client(made) as c,
                ):
                    assert said(await c.call_tool("far__hello", {})) == "signed in"

        assert len(opened) == 1
        (kept,) = (tmp_path / "oauth").iterdir()
        assert kept.stat().st_mode & 0o777 == 0o600
        assert json.loads(kept.read_text("utf-8"))["tokens"]["access_token"] in issuer.tokens

    run(main)


@pytest.mark.parametrize("secret", ["", "s3cret-of-mine"])
def test_a_client_of_ones_own_signs_in_without_being_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    browser(monkeypatch, lambda url: httpx2.get(url, follow_redirects=True) and None)

    async def main() -> None:
        issuer, port = Issuer(), free_port()
        issuer.clients["mine"] = OAuthClientInformationFull(
            client_id="mine",
            client_secret=secret or None,
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
        async with guarded_server(issuer) as far:
            own = replace(far, oauth_client_id="mine", oauth_client_secret=secret, oauth_port=port)
            async with gateway(own, auth=oauth.signer(tmp_path)) as made, client(made) as c:
                assert said(await c.call_tool("far__hello", {})) == "signed in"
        assert set(issuer.clients) == {"mine"}
        (kept,) = (tmp_path / "oauth").iterdir()
        assert "s3cret" not in kept.read_text("utf-8")
        assert "s3cret" not in repr(own)

    run(main)


def test_a_client_of_ones_own_asks_for_its_scopes_and_at_its_issuer_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def browse(url: str) -> None:
        opened.append(url)
        httpx2.get(url, follow_redirects=True)

    browser(monkeypatch, browse)

    async def main() -> None:
        issuer, port = Issuer(), free_port()
        issuer.clients["mine"] = OAuthClientInformationFull(
            client_id="mine",
            redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
            token_endpoint_auth_method="none",
            scope="read write",
        )
        async with guarded_server(issuer) as far:
            own = replace(far, oauth_client_id="mine", oauth_port=port, oauth_scopes=("read",))
            elsewhere = replace(own, oauth_issuer="https://login.example.com")
            async with gateway(elsewhere, auth=oauth.signer(tmp_path)) as made:
                (upstream,) = made.pool.upstreams.values()
                await until(lambda: upstream.state == "failed")
                assert "`oauth.issuer` is https://login.example.com" in (upstream.error or "")
            assert opened == []
            own = replace(own, oauth_issuer=far.url.removesuffix("/mcp"))
            async with gateway(own, auth=oauth.signer(tmp_path)) as made, client(made) as c:
                assert said(await c.call_tool("far__hello", {})) == "signed in"
        (asked,) = (parse_qs(urlsplit(url).query) for url in opened)
        assert asked["scope"] == ["read"]
        assert asked["code_challenge_method"] == ["S256"]

    run(main)


def came_back(url: str, **answer: str) -> httpx2.Response:
    """Come back from an authorization address with an answer, as a browser does."""
    query = parse_qs(urlsplit(url).query)
    given = {"state": query["state"][0], **answer}
    return httpx2.get(query["redirect_uri"][0], params={k: v for k, v in given.items() if v})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": "access_denied"}, "did not let us sign in: access_denied"),
        (
            {"error": "access_denied", "error_description": "You \u202esaid no.", "state": ""},
            "did not let us sign in: access_denied: You [U+202E]said no.",
        ),
        (
            {"error": "x" * 1_000},
            f"did not let us sign in: {'x' * 199}…",
        ),
        (
            {"code": "stolen", "state": "another"},
            "was answered from another try to sign in: close old windows",
        ),
        (
            {"code": "stolen", "state": ""},
            "was answered from another try to sign in: close old windows",
        ),
        (
            {"error": "access_denied", "state": "another"},
            "was answered from another try to sign in: close old windows",
        ),
    ],
)
def test_a_sign_in_that_comes_to_nothing_ends_at_once_with_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: dict[str, str], reason: str
) -> None:
    opened: list[httpx2.Response] = []
    browser(monkeypatch, lambda url: opened.append(came_back(url, **answer)))

    async def main() -> None:
        async with (
            guarded_server(Issuer()) as far,
            gateway(far, auth=oauth.signer(tmp_path)) as made,
        ):
            (upstream,) = made.pool.upstreams.values()
            await until(lambda: upstream.state == "failed")
            assert upstream.error == reason

            # It is tried again by itself, and the browser is left alone.
            await until(lambda: upstream.state == "starting")
            await until(lambda: upstream.state == "failed")
            assert upstream.error == reason
        (page,) = opened
        assert (page.status_code, page.text) == (400, f"You are not signed in: it {reason}.")

    run(main)


def test_other_requests_to_the_listener_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[int] = []

    def browse(url: str) -> None:
        back = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        asked = ("/favicon.ico", "/callback", "/callback?x=1", "/?error=no")
        base = back.removesuffix("/callback")
        others.extend(httpx2.get(base + other).status_code for other in asked)
        httpx2.get(url, follow_redirects=True)

    browser(monkeypatch, browse)

    async def main() -> None:
        async with (
            guarded_server(Issuer()) as far,
            gateway(far, auth=oauth.signer(tmp_path)) as made,
            client(made) as c,
        ):
            assert said(await c.call_tool("far__hello", {})) == "signed in"
        assert others == [404] * 4

    run(main)
