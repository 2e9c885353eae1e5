"""A gateway that signs in at a server by itself: a client's own id and secret, and no browser."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.gateways import client, gateway, run, said, until
from support.issuers import Issuer, issuer
from support.machine import free_port
from toolfold.config import load_gateway
from toolfold.config.oauth_settings import Grant, OAuthSettings
from toolfold.errors import ConfigError
from toolfold.runtime import Registry
from toolfold.serve.gateway import Gateway
from toolfold.serve.http.app import make_app
from toolfold.serve.http.listening import Listening
from toolfold.sources.mcp import oauth
from toolfold.sources.mcp.server import Server

SECRET = "s3cret of+mine/&%"


@asynccontextmanager
async def guarded(made: Issuer, **more: Any) -> AsyncIterator[Server]:
    """A server that takes the access tokens of an issuer, and how a gateway reaches it."""
    registry = Registry()

    @registry.tool
    def hello() -> str:
        """Greet."""
        return "signed in"

    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    settings = OAuthSettings(
        issuer=made.url, resource=url, grants=(Grant("tools"),), scopes=("other",), leeway=0
    )
    sources = [registry.prefixed("own")]
    async with gateway(serve={"oauth": settings}, sources=sources) as far:
        app = make_app(far, "127.0.0.1")
        listening = Listening(app, ("127.0.0.1", port), far.config.serve)
        serving = asyncio.create_task(listening.serve())
        await listening.address()
        made.clients["robot"] = SECRET
        try:
            values: dict[str, Any] = {
                "oauth": True,
                "oauth_client_id": "robot",
                "oauth_client_secret": SECRET,
                "oauth_issuer": made.url,
                "oauth_grant": "client_credentials",
                "oauth_scopes": ("tools",),
                **more,
            }
            yield Server("far", "http", url=url, **values)
        finally:
            listening.stop()
            await serving


def with_issuer(main: Callable[[Issuer], Any]) -> None:
    with issuer() as made:
        run(lambda: main(made))


async def failed(made: Gateway) -> str:
    """Why the one server of a gateway is not there."""
    (upstream,) = made.pool.upstreams.values()
    await until(lambda: upstream.state == "failed", 20)
    return upstream.error or ""


@pytest.mark.parametrize("how", ["basic", "post"])
def test_it_signs_in_by_itself_asks_for_the_scopes_that_were_named_and_keeps_no_secret(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def main(made: Issuer) -> None:
        async with guarded(made, oauth_client_auth=how) as far:
            for _ in range(2):  # the second time with the token that was kept
                async with gateway(far, auth=oauth.signer(tmp_path)) as near, client(near) as c:
                    assert said(await c.call_tool("far__own__hello", {})) == "signed in"
        (asked,) = made.given
        assert (asked["grant_type"], asked["scope"]) == ("client_credentials", "tools")
        assert asked["resource"] == far.url
        assert ("client_secret" in asked) == (how == "post")
        (kept,) = (tmp_path / "oauth").iterdir()
        assert kept.stat().st_mode & 0o777 == 0o600
        assert SECRET not in kept.read_text("utf-8")
        assert SECRET not in caplog.text + repr(far)

    with_issuer(main)


def test_a_token_that_has_ended_is_got_anew_in_the_middle_of_a_session(tmp_path: Path) -> None:
    async def main(made: Issuer) -> None:
        made.life = 2
        async with (
            guarded(made) as far,
            gateway(far, auth=oauth.signer(tmp_path)) as near,
            client(near) as c,
        ):
            assert said(await c.call_tool("far__own__hello", {})) == "signed in"
            before, ended = len(made.given), time.time() + made.life
            made.life = 300  # the next one does not end before it is used, however slow it is here
            await until(lambda: time.time() > ended)
            assert said(await c.call_tool("far__own__hello", {})) == "signed in"
            assert len(made.given) > before

    with_issuer(main)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            {"oauth_client_secret": "another-secret-of-mine"},
            "did not let us sign in: invalid_client: no robot [redacted] "
            "(check `oauth.client_id`, its secret and `oauth.client_auth`)",
        ),
        (
            {"oauth_scopes": ("tools", "admin")},
            "did not let us sign in: invalid_scope (check `oauth.scopes`)",
        ),
    ],
)
def test_a_refusal_is_told_with_the_key_to_look_at_and_without_the_secret(
    tmp_path: Path, more: dict[str, Any], reason: str
) -> None:
    async def main(made: Issuer) -> None:
        made.scopes = frozenset({"tools"})
        async with (
            guarded(made, **more) as far,
            gateway(far, auth=oauth.signer(tmp_path)) as near,
        ):
            assert await failed(near) == reason

    with_issuer(main)


def test_a_server_that_leads_to_another_issuer_gets_no_secret_there(tmp_path: Path) -> None:
    async def main(theirs: Issuer) -> None:
        with issuer() as own:
            async with (
                guarded(theirs, oauth_issuer=own.url) as far,
                gateway(far, auth=oauth.signer(tmp_path)) as near,
            ):
                reason = await failed(near)
                assert f"wants us to sign in at {theirs.url}" in reason
                assert f"`oauth.issuer` is {own.url}" in reason
        assert (theirs.given, theirs.refused, own.given) == ([], [], [])

    with_issuer(main)


def test_an_issuer_without_metadata_gets_no_secret_either(tmp_path: Path) -> None:
    async def main(made: Issuer) -> None:
        made.metadata = {"issuer": "https://somebody.else.example"}
        async with (
            guarded(made) as far,
            gateway(far, auth=oauth.signer(tmp_path)) as near,
        ):
            assert "did not let us sign in" in await failed(near)
        assert (made.given, made.refused) == ([], [])

    with_issuer(main)


def test_other_scopes_are_asked_for_anew(tmp_path: Path) -> None:
    async def main(made: Issuer) -> None:
        async with guarded(made) as far:
            for scopes in (("tools",), ("tools", "more")):
                wanted = replace(far, oauth_scopes=scopes)
                async with gateway(wanted, auth=oauth.signer(tmp_path)) as near, client(near) as c:
                    assert said(await c.call_tool("far__own__hello", {})) == "signed in"
        assert [asked["scope"] for asked in made.given] == ["tools", "tools more"]

    with_issuer(main)


def read(folder: Path, entry: dict[str, Any], **environ: str) -> Server:
    file = folder / "toolfold.json"
    whole = {"mcpServers": {"far": {"url": "https://far.example/mcp", **entry}}}
    file.write_text(json.dumps(whole), "utf-8")
    (server,) = load_gateway(file, environ).servers
    return server


OWN = {
    "client_id": "robot",
    "client_secret_env": "ROBOT",
    "issuer": "https://login.example",
    "scopes": "tools more",
    "grant": "client_credentials",
    "client_auth": "post",
}


def test_a_block_names_the_client_and_the_variable_that_holds_its_secret(tmp_path: Path) -> None:
    server = read(tmp_path, {"oauth": OWN}, ROBOT="s3cret-of-mine")

    assert (server.oauth, server.oauth_client_id) == (True, "robot")
    assert server.oauth_client_secret == "s3cret-of-mine"
    assert server.oauth_scopes == ("tools", "more")
    assert (server.oauth_grant, server.oauth_client_auth) == ("client_credentials", "post")
    assert server.oauth_issuer == "https://login.example"
    assert "s3cret-of-mine" in server.secrets


@pytest.mark.parametrize(
    ("change", "said", "hint"),
    [
        ({"issuer": None}, "`oauth_issuer` is not set", "oauth: {issuer: …}"),
        ({"client_secret_env": None}, "`oauth_client_secret` is not set", "client_secret_env"),
        ({"client_id": None}, "`oauth_client_id` is not set", "client_id"),
        ({"issuer": "http://login.example"}, "which is not encrypted", "https://"),
        ({"grant": "password"}, "oauth", "client_credentials"),
        ({"client_secret_env": "NOT_SET"}, "`NOT_SET`, which is not set", "set it"),
        ({"enabled": False}, "`oauth` is not", "oauth: true"),
        ({"client_secrets": "x"}, "unknown key", "client_secret"),
    ],
)
def test_a_client_that_could_not_sign_in_is_refused_with_the_fix(
    tmp_path: Path, change: dict[str, Any], said: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, {"oauth": {**OWN, **change}}, ROBOT="s3cret-of-mine")

    assert said in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "s3cret" not in str(caught.value)
