"""Tokens changed under a gateway that serves over HTTP, the admin's door, and readiness."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from support.gateways import run, said, until
from support.reloaded import Reloaded, entry, reloaded
from toolfold.serve.control.messages import ControlError
from toolfold.serve.http.app import make_app
from toolfold.serve.token_store import KeptToken, TokenStore, digest_of

ONE, TWO, CHIEF = "one-" + "1" * 32, "two-" + "2" * 32, "chief-" + "3" * 32


def token(name: str, value: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "sha256": hashlib.sha256(value.encode()).hexdigest(), **more}


@asynccontextmanager
async def served(folder: Path, **serve: Any) -> AsyncIterator[tuple[Reloaded, str]]:
    """A gateway over HTTP whose configuration can be written and read again."""
    async with reloaded(folder, {"one": entry("one")}, **serve) as place:
        app = make_app(place.gateway, "127.0.0.1", verbs=place.verbs)
        settings = uvicorn.Config(
            app, port=0, log_config=None, lifespan="on", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(settings)
        serving = asyncio.create_task(server.serve())
        await until(lambda: server.started, 20)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield place, f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await serving


def http(value: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers={"authorization": f"Bearer {value}"}, timeout=30)


def mcp(url: str, http_client: httpx2.AsyncClient, mode: str, **more: Any) -> Client:
    transport = streamable_http_client(f"{url}/mcp", http_client=http_client)
    return Client(transport, mode=mode, **more)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("how", ["revoked", "rotated"])
def test_a_token_that_is_revoked_or_rotated_in_mid_session_opens_nothing_more(
    tmp_path: Path, how: str, mode: str
) -> None:
    async def main() -> None:
        both = [token("first", ONE), token("second", TWO)]
        async with (
            served(tmp_path, tokens=both) as (place, url),
            http(ONE) as h1,
            http(TWO) as h2,
        ):
            second = mcp(url, h2, mode)
            async with second:
                first = mcp(url, h1, mode)
                await first.__aenter__()
                assert said(await first.call_tool("one__echo", {"x": "a"})) == "one:a"
                left = [token("second", TWO)]
                left += [token("first", "other-" + "9" * 32)] if how == "rotated" else []
                place.write({"one": entry("one")}, tokens=left)
                told = await place.ask("reload")
                assert told["tokens"] == ["first"]

                refused = await h1.post(f"{url}/mcp", json={})
                assert refused.status_code == 401
                with pytest.raises(Exception):  # noqa: B017
                    async with asyncio.timeout(5):
                        await first.call_tool("one__echo", {"x": "b"})
                own = [c for c in place.gateway.clients if c.principal.name == "first"]
                await until(lambda: not [c for c in own if c in list(place.gateway.clients)])
                assert said(await second.call_tool("one__echo", {"x": "c"})) == "one:c"
                with pytest.raises(BaseException):  # noqa: B017
                    await first.__aexit__(None, None, None)
                    raise RuntimeError

    run(main, 90)


def test_a_session_of_a_token_whose_scope_is_narrower_sees_less_at_once(tmp_path: Path) -> None:
    heard: list[str] = []

    async def listen(message: Any) -> None:
        heard.append(type(message).__name__)

    async def main() -> None:
        async with (
            served(tmp_path, tokens=[token("first", ONE)]) as (place, url),
            http(ONE) as h,
            mcp(url, h, "legacy", message_handler=listen) as c,
        ):
            tools = {tool.name for tool in (await c.list_tools()).tools}
            assert {"one__echo", "one__pid"} <= tools
            place.write({"one": entry("one")}, tokens=[token("first", ONE, allow=["one__echo"])])
            told = await place.ask("reload")
            assert (told["tokens"], told["widened"]) == (["first"], [])

            assert (await c.call_tool("one__pid", {})).is_error
            await until(lambda: "ToolListChangedNotification" in heard)
            assert {tool.name for tool in (await c.list_tools()).tools} == {"one__echo"}

    run(main, 60)


def test_a_call_of_a_revoked_token_that_is_under_way_is_ended(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            served(tmp_path, tokens=[token("first", ONE), token("second", TWO)]) as (place, url),
            http(ONE) as h,
        ):
            headers = {
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": "2026-07-28",
                "mcp-method": "tools/call",
                "mcp-name": "one__slow",
            }
            body = {
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {
                    "name": "one__slow", "arguments": {"x": "30"},
                    "_meta": {
                        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                        "io.modelcontextprotocol/clientCapabilities": {},
                    },
                },
            }  # fmt: skip
            call = asyncio.create_task(h.post(f"{url}/mcp", json=body, headers=headers))
            await until(lambda: place.gateway.pool.in_flight == 1, 20)
            place.write({"one": entry("one")}, tokens=[token("second", TWO)])
            await place.ask("reload")
            await asyncio.wait([call], timeout=10)
            assert call.done()
            assert place.gateway.pool.in_flight == 0

    run(main, 60)


def test_taking_all_tokens_away_is_refused_where_others_reach_the_address(tmp_path: Path) -> None:
    async def main() -> None:
        async with reloaded(tmp_path, {"one": entry("one")}, tokens=[token("first", ONE)]) as place:
            make_app(place.gateway, "0.0.0.0")
            place.write({"one": entry("one")})
            with pytest.raises(Exception, match="would serve everybody"):
                await place.ask("reload")
            assert place.gateway.config.serve.tokens

    run(main, 60)


def test_the_admins_door_is_theirs_alone_and_takes_the_sockets_verbs(tmp_path: Path) -> None:
    admin = "sha256:" + hashlib.sha256(CHIEF.encode()).hexdigest()

    async def main() -> None:
        async with (
            served(tmp_path, tokens=[token("first", ONE)], admin=admin) as (_, url),
            http(CHIEF) as chief,
            http(ONE) as user,
        ):
            done = await chief.post(f"{url}/admin/servers.disable", json={"name": "one"})
            assert (done.status_code, done.json()["result"]["state"]) == (200, "disabled")
            listed = (await chief.post(f"{url}/admin/servers.list")).json()
            assert listed["result"]["servers"][0]["state"] == "disabled"

            for wrong, status in (("servers.disabel", 404), ("servers.restart", 400)):
                assert (await chief.post(f"{url}/admin/{wrong}")).status_code == status
            text = await chief.post(f"{url}/admin/status", content=b"[1]")
            assert (text.status_code, text.json()["error"]["code"]) == (400, "bad_request")

            assert (await user.post(f"{url}/admin/status")).status_code == 401
            assert (await chief.post(f"{url}/mcp", json={})).status_code == 401
            assert (await chief.get(f"{url}/metrics")).status_code == 401
            assert (await chief.get(f"{url}/admin/status")).status_code == 405
            page = {"origin": "https://evil.example"}
            assert (await chief.post(f"{url}/admin/status", headers=page)).status_code == 403
            host = {"host": "evil.example"}
            assert (await chief.post(f"{url}/admin/status", headers=host)).status_code == 421

    run(main, 60)


def test_whoever_guesses_at_the_admins_token_does_not_keep_the_admin_out(tmp_path: Path) -> None:
    async def main() -> None:
        admin = f"sha256:{hashlib.sha256(CHIEF.encode()).hexdigest()}"
        async with served(tmp_path, admin=admin) as (_, url), http(TWO) as stranger:
            answers = {401}
            while 429 not in answers:
                answers.add((await stranger.post(f"{url}/admin/status")).status_code)
            async with http(CHIEF) as chief:
                assert (await chief.post(f"{url}/admin/status")).status_code == 200
            assert answers == {401, 429}

    run(main, 60)


def test_without_an_admin_there_is_no_such_door(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as (_, url), httpx2.AsyncClient(timeout=30) as anyone:
            assert (await anyone.post(f"{url}/admin/status")).status_code == 404

    run(main, 60)


def test_readiness_fails_before_calls_are_refused_and_health_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            served(tmp_path, notice=1.0, drain=5) as (place, url),
            httpx2.AsyncClient(timeout=30) as h,
            mcp(url, h, "legacy") as c,
        ):
            assert (await h.get(f"{url}/readyz")).json() == {"status": "ready"}
            ending = asyncio.create_task(place.gateway.drain())
            await asyncio.sleep(0)
            ready = await h.get(f"{url}/readyz")
            assert (ready.status_code, ready.json()) == (503, {"status": "stopping"})
            assert (await h.get(f"{url}/healthz")).status_code == 200
            assert said(await c.call_tool("one__echo", {"x": "still"})) == "one:still"
            await until(lambda: place.gateway.calls.is_closing)
            assert (await h.get(f"{url}/healthz")).status_code == 503
            assert "is stopping" in said(await c.call_tool("one__echo", {"x": "late"}))
            await ending

    run(main, 60)


def test_tokens_that_are_made_and_revoked_by_command_count_at_once(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "state")

    async def main() -> None:
        async with served(tmp_path, tokens=[token("filed", ONE)]) as (place, url), http(TWO) as h:
            assert (await h.post(f"{url}/mcp", json={})).status_code == 401
            store.create(KeptToken("made", digest_of(TWO), 1.0, allow=("one__echo",)))
            place.write({"one": entry("one"), "new": entry("new")}, tokens=[token("filed", ONE)])

            assert await place.ask("tokens.apply") == {"tokens": ["made"]}
            assert list(place.gateway.pool.upstreams) == ["one"]  # the file waits for a reload
            async with mcp(url, h, "legacy") as c:
                assert {tool.name for tool in (await c.list_tools()).tools} == {"one__echo"}

            store.revoke("made", 2.0)
            assert await place.ask("tokens.apply") == {"tokens": ["made"]}
            assert (await h.post(f"{url}/mcp", json={})).status_code == 401
            assert [t.name for t in place.gateway.config.serve.tokens] == ["filed"]

            (tmp_path / "state" / "tokens.json").write_text("broken", "utf-8")
            with pytest.raises(ControlError, match="cannot be used"):
                await place.ask("tokens.apply")
            assert [t.name for t in place.gateway.config.serve.tokens] == ["filed"]

    run(main, 60)


def test_revoking_the_last_token_is_not_said_to_permit_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = TokenStore(tmp_path / "state")

    async def main() -> None:
        async with served(tmp_path) as (place, url), http(ONE) as h:
            store.create(KeptToken("made", digest_of(ONE), 1.0))
            await place.ask("tokens.apply")
            caplog.clear()
            store.revoke("made", 2.0)
            assert await place.ask("tokens.apply") == {"tokens": ["made"]}
            assert (await h.post(f"{url}/mcp", json={})).status_code == 401
            assert "permits more" not in caplog.text

    run(main, 60)


def test_the_admins_token_may_be_in_a_variable_that_is_named_like_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLFOLD_ADMIN", CHIEF)

    async def main() -> None:
        async with (
            served(tmp_path, tokens=[token("first", ONE)], admin="TOOLFOLD_ADMIN") as (_, url),
            http(CHIEF) as chief,
        ):
            assert (await chief.post(f"{url}/admin/status")).status_code == 200

    run(main, 60)


@pytest.mark.parametrize("wrong", ["", "short", ONE])
def test_an_admins_token_that_is_unset_short_or_somebody_elses_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv("CHIEF", wrong)

    async def main() -> None:
        async with served(tmp_path, tokens=[token("first", ONE)]) as (place, _):
            place.write({"one": entry("one")}, tokens=[token("first", ONE)], admin="CHIEF")
            with pytest.raises(ControlError) as caught:
                await place.ask("reload")
            assert caught.value.code == "broken"
            assert ONE not in caught.value.message

    run(main, 60)


def test_a_token_that_is_revoked_while_its_request_still_comes_in_runs_nothing(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        both = [token("first", ONE), token("second", TWO)]
        async with served(tmp_path, tokens=both) as (place, url):
            body = json.dumps({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {
                    "name": "one__echo", "arguments": {"x": "ran"},
                    "_meta": {
                        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                        "io.modelcontextprotocol/clientCapabilities": {},
                    },
                },
            }).encode()  # fmt: skip
            head = (
                "POST /mcp HTTP/1.1", f"Host: {url.removeprefix('http://')}",
                f"Authorization: Bearer {ONE}", "Content-Type: application/json",
                "Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2026-07-28",
                "Mcp-Method: tools/call", "Mcp-Name: one__echo", f"Content-Length: {len(body)}",
            )  # fmt: skip
            port = int(url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write("\r\n".join((*head, "", "")).encode() + body[:20])
            await writer.drain()
            # It is let in before the token is gone, and is whole after.
            async with http(TWO) as h:
                assert (await h.get(f"{url}/healthz")).status_code == 200
                place.write({"one": entry("one")}, tokens=[token("second", TWO)])
                assert (await place.ask("reload"))["tokens"] == ["first"]
            writer.write(body[20:])
            await writer.drain()
            answer = await reader.readuntil(b"\r\n")
            writer.close()
            assert answer == b"HTTP/1.1 401 Unauthorized\r\n"

    run(main, 60)
