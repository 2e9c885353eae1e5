"""Every client over HTTP is its own conversation, of a revision with sessions or without."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ToolsListChanged

from support.gateways import ERAS, gateway, odd, run, said, until
from toolfold.config.serve_settings import Token
from toolfold.serve.gateway import Gateway
from toolfold.serve.http.app import make_app
from toolfold.serve.http.conversations import (
    UNCLAIMED_AT_MOST,
    ConversationDoor,
    HttpConversation,
    conversation_of,
)
from toolfold.serve.principals import Principal, bind

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]

LAPTOP, PHONE = "laptop-token-0123456789", "phone-token-0123456789"
TOKENS = tuple(
    Token(name, sha256=hashlib.sha256(token.encode()).hexdigest())
    for name, token in (("laptop", LAPTOP), ("phone", PHONE))
)
REVEAL = {"enabled": "on", "strategy": "reveal"}
NAME = "a-name-that-nobody-guesses"


@asynccontextmanager
async def listening(made: Gateway) -> AsyncIterator[str]:
    """The gateway's application on a port of its own; yields its address."""
    app = make_app(made, "127.0.0.1")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    serving = asyncio.create_task(server._serve())  # pyright: ignore[reportPrivateUsage]
    await until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        await app.close(1)
        server.should_exit = True
        await serving


@asynccontextmanager
async def connected(
    url: str,
    mode: str = "auto",
    token: str = LAPTOP,
    headers: Mapping[str, str] | None = None,
    *,
    keeps_cookies: bool = True,
) -> AsyncIterator[Client]:
    """The official client over HTTP."""
    all_headers = {"Authorization": f"Bearer {token}", **(headers or {})}
    nothing = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
    async with (
        httpx2.AsyncClient(
            headers=all_headers,
            timeout=httpx2.Timeout(30, read=None),
            cookies=None if keeps_cookies else nothing,
        ) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as c,
    ):
        yield c


async def names(c: Client) -> list[str]:
    return [tool.name for tool in (await c.list_tools()).tools]


async def pid(c: Client) -> str:
    return said(await c.call_tool("one__pid", {}))


@pytest.mark.parametrize("modes", [("legacy", "legacy"), ("auto", "auto"), ERAS])
def test_what_one_client_reveals_another_of_the_same_token_does_not_list(
    modes: tuple[str, str],
) -> None:
    async def main() -> None:
        async with (
            gateway(odd("one"), settings=REVEAL, serve={"tokens": TOKENS}) as made,
            listening(made) as url,
            connected(url, modes[0]) as first,
            connected(url, modes[1]) as second,
        ):
            before = await names(first)
            assert before == await names(second) == ["tool_search", "tool_describe"]

            await first.call_tool("tool_search", {"query": "say a text back"})

            assert "one__echo" in await names(first)
            assert await names(second) == before
            await second.call_tool("tool_search", {"query": "add a tool to the list"})
            assert "one__grow" in await names(second)
            assert "one__grow" not in await names(first)

    run(main)


@pytest.mark.parametrize("modes", [("legacy", "legacy"), ("auto", "auto"), ERAS])
def test_each_client_of_a_token_has_a_server_of_its_own(modes: tuple[str, str]) -> None:
    async def main() -> None:
        async with (
            gateway(odd("one", per_session=True), serve={"tokens": TOKENS}) as made,
            listening(made) as url,
            connected(url, modes[0]) as first,
            connected(url, modes[1]) as second,
        ):
            pids = [await pid(c) for c in (first, second, first, second)]
            assert pids[:2] == pids[2:]
            assert len(set(pids)) == 2
            assert len(made.pool.all) == 3  # theirs, and the one that lists

    run(main)


def test_calls_at_once_find_the_same_server() -> None:
    async def main() -> None:
        async with (
            gateway(odd("one", per_session=True)) as made,
            listening(made) as url,
            connected(url) as c,
        ):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(pid(c)) for _ in range(8)]
            assert len({task.result() for task in tasks}) == 1
            assert len(made.pool.all) == 2

    run(main)


def test_a_client_that_listens_hears_of_its_own_list_alone() -> None:
    async def main() -> None:
        async with (
            gateway(odd("one"), settings=REVEAL) as made,
            listening(made) as url,
            connected(url) as first,
            connected(url) as second,
            first.listen(tools_list_changed=True) as news,
            second.listen(tools_list_changed=True) as others,
        ):
            await first.call_tool("tool_search", {"query": "say a text back"})
            assert await anext(aiter(news)) == ToolsListChanged()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await anext(aiter(others))

    run(main)


def test_a_cookie_counts_only_as_we_made_it_and_for_its_own_token() -> None:
    async def main() -> None:
        async with (
            gateway(odd("one", per_session=True), serve={"tokens": TOKENS}) as made,
            listening(made) as url,
            httpx2.AsyncClient() as http,
        ):
            given = (await discovered(http, url)).headers["set-cookie"]
            assert "HttpOnly" in given
            assert "SameSite=Strict" in given
            cookie = given.partition(";")[0]
            name, _, value = cookie.partition("=")

            # Whoever comes back is not given another one.
            assert "set-cookie" not in (await discovered(http, url, cookie)).headers
            key = value.rpartition(".")[0]
            for token, wrong in (
                (PHONE, cookie),
                (LAPTOP, f"{name}={value[:-1]}{'0' if value[-1] != '0' else '1'}"),
                (LAPTOP, f"{name}={key}."),
                (LAPTOP, f"{name}={key}"),
                (LAPTOP, f"{name}=chosen"),
                (LAPTOP, f"{name}=é.é; {name}="),
            ):
                other = await discovered(http, url, wrong, token)
                assert other.status_code == 200
                assert other.headers["set-cookie"].partition(";")[0] not in (cookie, wrong)

    run(main)


async def discovered(
    http: httpx2.AsyncClient,
    url: str,
    cookie: str = "",
    token: str = LAPTOP,
    **headers: str,
) -> httpx2.Response:
    http.cookies.clear()
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
    own = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "mcp-method": "server/discover",
        **({"cookie": cookie} if cookie else {}),
        **headers,
    }
    raw = [(k.encode(), v.encode("latin-1")) for k, v in own.items()]
    return await http.post(url, json=body, headers=raw)


def test_a_client_may_name_its_conversation_within_its_token() -> None:
    async def main() -> None:
        own = {"toolfold-conversation": NAME}
        async with (
            gateway(odd("one", per_session=True), serve={"tokens": TOKENS}) as made,
            listening(made) as url,
            connected(url, headers=own, keeps_cookies=False) as first,
            connected(url, headers=own, keeps_cookies=False) as again,
            connected(url, headers={"toolfold-conversation": NAME + "2"}) as other,
            connected(url, token=PHONE, headers=own) as phone,
        ):
            assert await pid(first) == await pid(again)
            assert len({await pid(c) for c in (first, other, phone)}) == 3

    run(main)


@pytest.mark.parametrize("name", ["short", "x" * 129, "with a blank in the middle", "é" * 20, ""])
def test_a_name_that_could_be_guessed_or_read_in_two_ways_is_refused(name: str) -> None:
    async def main() -> None:
        async with (
            gateway(odd("one"), serve={"tokens": TOKENS}) as made,
            listening(made) as url,
            httpx2.AsyncClient() as http,
        ):
            refused = await discovered(http, url, **{"toolfold-conversation": name})
            assert (refused.status_code, refused.text) == (
                400,
                "`toolfold-conversation` must be there once, with 16 to 128 visible characters\n",
            )

    run(main)


def test_a_client_that_cannot_be_told_apart_reaches_everything_and_leaves_nothing() -> None:
    async def main() -> None:
        serve = {"tokens": TOKENS, "session_idle": 1}
        async with (
            gateway(odd("one"), odd("two", per_session=True), settings=REVEAL, serve=serve) as made,
            listening(made) as url,
            connected(url, keeps_cookies=False) as c,
        ):
            # What a search finds cannot join its list: it gets what needs no memory.
            listed = ["tool_search", "tool_describe", "tool_call"]
            assert await names(c) == listed
            assert "tool_call" in said(await c.call_tool("tool_search", {"query": "say text back"}))
            call = {"name": "one__echo", "arguments": {"x": "a"}}
            assert said(await c.call_tool("tool_call", call)) == "one:a"
            assert await names(c) == listed

            own = {"name": "two__pid", "arguments": {}}
            pids = {said(await c.call_tool("tool_call", own)) for _ in range(3)}
            assert len(pids) == 3
            await until(lambda: len(made.pool.all) == 2, 15)
            assert not len(made.sessions)

    run(main)


def test_an_idle_conversation_is_let_go_and_its_client_goes_on() -> None:
    async def main() -> None:
        async with (
            gateway(odd("one", per_session=True), serve={"session_idle": 1}) as made,
            listening(made) as url,
            connected(url) as c,
        ):
            first = await pid(c)
            await until(lambda: len(made.pool.all) == 1, 15)
            assert await pid(c) != first

    run(main)


def test_beyond_its_number_a_tokens_oldest_conversation_gives_way_and_no_others() -> None:
    async def main() -> None:
        serve = {"tokens": TOKENS, "sessions_per_token": 2}
        async with (
            gateway(odd("one", per_session=True), serve=serve) as made,
            listening(made) as url,
            connected(url, token=PHONE) as phone,
            connected(url) as first,
            connected(url) as second,
            connected(url) as third,
        ):
            kept = await pid(phone)
            oldest, newer = await pid(first), await pid(second)
            await pid(third)
            await until(lambda: len(made.pool.all) == 4)
            assert await pid(second) == newer
            assert await pid(phone) == kept
            assert await pid(first) != oldest

    run(main)


# ---- the laws of the door


class Held:
    """Keeps whatever conversations there were."""

    def __init__(self) -> None:
        self.keys: set[str] = set()

    def keeps(self, key: str) -> bool:
        return key in self.keys

    async def forget(self, key: str) -> None:
        self.keys.discard(key)


Asked = Callable[[str, str, str], Awaitable[tuple[HttpConversation, str]]]


def asking(held: Held, clock: Callable[[], float], **limits: Any) -> tuple[Asked, ConversationDoor]:
    """Return what asks a door as somebody, with a cookie and a name, and the door."""
    found: list[HttpConversation] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append(conversation_of(scope))
        held.keys.add(found[-1].key)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    door = ConversationDoor(app, held, clock=clock, **limits)

    async def ask(owner: str, cookie: str, name: str) -> tuple[HttpConversation, str]:
        headers = [(b"mcp-protocol-version", b"2026-07-28")]
        headers += [(b"cookie", cookie.encode())] if cookie else []
        headers += [(b"toolfold-conversation", name.encode())] if name else []
        scope: dict[str, Any] = {"type": "http", "headers": headers, "server": ("127.0.0.1", 1)}
        bind(scope, Principal(owner))
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await door(scope, _nothing, send)
        given = dict(sent[0]["headers"]).get(b"set-cookie", b"").decode()
        return found[-1], given.partition(";")[0]

    return ask, door


async def _nothing() -> Any:
    raise AssertionError("nobody reads")


STEPS = st.lists(
    st.tuples(
        st.sampled_from("ab"),  # whose token
        st.integers(-1, 5),  # whose cookie: that of an earlier step, or none
        st.sampled_from(["", "", NAME, NAME + "2"]),
        st.floats(0, 100),  # seconds
    ),
    max_size=12,
)


@given(STEPS)
def test_two_requests_share_a_conversation_only_by_a_cookie_or_a_name_of_one_token(
    steps: list[tuple[str, int, str, float]],
) -> None:
    async def main() -> None:
        now = 0.0
        held = Held()
        ask, door = asking(held, lambda: now, idle=150, each=3, in_all=5)
        who: list[tuple[str, object]] = []
        keys: list[str] = []
        cookies: list[tuple[str, str, object]] = []
        for number, (owner, which, name, seconds) in enumerate(steps):
            now += seconds
            theirs, cookie, same = cookies[which] if 0 <= which < len(cookies) else ("", "", None)
            conversation, given = await ask(owner, cookie, name)
            fresh = f"step {number}"
            identity: object = name or (same if theirs == owner else None) or fresh
            who.append((owner, identity))
            keys.append(conversation.key)
            assert conversation.is_known is (identity != fresh)
            assert bool(given) is not conversation.is_known
            if given:
                cookies.append((owner, given, fresh))
            assert len(door) <= 5
        assert len(set(zip(who, keys, strict=True))) == len(set(who)) == len(set(keys))

    asyncio.run(main())


def test_who_keeps_no_cookie_fills_no_table_of_others() -> None:
    async def main() -> None:
        held = Held()
        ask, door = asking(held, lambda: 0.0)
        await ask("phone", "", "")
        named, _ = await ask("laptop", "", NAME)
        for _ in range(300):
            await ask("laptop", "", "")
        await until(lambda: len(held.keys) == len(door))
        assert len(door) == 2 + UNCLAIMED_AT_MOST
        assert named.key in held.keys

    run(main)
