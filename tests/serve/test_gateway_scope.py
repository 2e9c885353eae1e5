"""A narrow token under a fuzzer: nothing tells it of what it may not see.

Each question goes to two gateways: one that has what the token may not see, and one that has
never had it. What comes back must be the same, to the byte, but for tokens and ids that are
random. Meanwhile, what may not be seen is used by somebody else, changes, speaks and dies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from support.gateways import client, gateway, run, until
from support.servers.place import again_until
from support.servers.questions import every_name, steps
from support.servers.twins import (
    ACCEPT,
    CONTENT,
    NARROW,
    VAULT,
    WIDE,
    Side,
    Twins,
    plain,
    scoped,
    tool,
    twins,
)
from toolfold.scope import EVERYTHING, Scope
from toolfold.serve.principals import Principal
from toolfold.sources.mcp._exposed_names import exposed_name
from toolfold.sources.mcp.server import Server

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")

PAIRS = [
    ("patterns", "bridge", "on"),
    *(
        pytest.param(pair, marks=pytest.mark.slow)
        for pair in (
            ("read_only", "bridge", "on"),
            ("patterns", "reveal", "on"),
            ("read_only", "bridge", "off"),
            ("nothing", "bridge", "on"),
        )
    ),
]


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def pair(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    with twins(tmp_path_factory.mktemp("twins"), *request.param) as made:
        yield made


async def happen(side: Side, what: str, to: Any) -> None:
    """Let something befall what the narrow token may not see."""
    if what == "use":
        await side.modern(WIDE, *to)
    else:
        getattr(side, what)(to)


async def play(pair: Twins, played: list[Any]) -> None:
    token = pair.narrow.secret
    sides = (pair.full, pair.twin)
    sessions = [await side.greet(token) for side in sides]
    try:
        for how, what in played:
            if how not in ("old", "modern"):
                await happen(pair.full, how, what)
                continue
            method, params = what
            replies = [
                await side.post(token, method, params, session)
                if how == "old"
                else await side.modern(token, method, params)
                for side, session in zip(sides, sessions, strict=True)
            ]
            assert replies[0].seen == replies[1].seen, (how, method, params)
    finally:
        for side, session in zip(sides, sessions, strict=True):
            await side.leave(token, session)


def test_every_answer_is_that_of_a_gateway_without_what_is_hidden(pair: Twins) -> None:
    @settings(max_examples=15)
    @given(steps)
    def fuzz(played: list[Any]) -> None:
        pair.run(play(pair, played))

    fuzz()


def test_every_name_there_is_reads_as_one_that_there_is_not(pair: Twins) -> None:
    async def sweep() -> None:
        for side in (pair.full, pair.twin):
            side.cookies.clear()  # both begin a new conversation
        for method, params in every_name():
            token = pair.narrow.secret
            full, twin = [
                await side.modern(token, method, params) for side in (pair.full, pair.twin)
            ]
            assert full.seen == twin.seen, (method, params)

    pair.run(sweep())


# ---- what is told without being asked

CHANGED = {"method": "notifications/tools/list_changed"}
SEEN_CHANGE = {"later": {"tools": [tool("find_weather", "Find it.", True)]}, "news": [CHANGED]}

KINDS = ("tools", "prompts", "resources")


async def until_hidden_lists(pair: Twins, side: Side, *, are_changed: bool) -> None:
    """Wait until the gateway has read the lists of the hidden servers, as they are now."""
    if side is pair.twin:
        return
    later = ("payroll_two", "secret_laundry", "getaway", "secret_escape", "vault:///y")

    async def listed() -> str:
        return str([(await side.modern(WIDE, f"{kind}/list", {})).messages for kind in KINDS])

    await again_until(listed, lambda text: all((name in text) == are_changed for name in later))


@pytest.mark.parametrize("era", ["old", "modern"])
def test_no_notification_or_question_comes_from_what_is_hidden(tmp_path: Path, era: str) -> None:
    narrow = NARROW["patterns"]
    full, kept = ({**c, "open": {**c["open"], **SEEN_CHANGE}} for c in (CONTENT, narrow.content))
    token = narrow.secret

    async def told(pair: Twins, side: Side) -> list[Any]:
        def speak(*servers: str) -> None:
            for server in servers if side is pair.full else ():
                side.speak(server)

        session = await side.greet(token, roots={"listChanged": True}, elicitation={})
        for method, params in [
            ("tools/list", {}), ("prompts/list", {}), ("resources/list", {}),
            ("resources/subscribe", {"uri": "doc:///shared"}),
            ("logging/setLevel", {"level": "debug"}),
        ]:  # fmt: skip
            await side.post(token, method, params, session)
        if era == "modern":
            await side.leave(token, session)
        async with side.hearing(token, session if era == "old" else None) as messages:
            speak(VAULT, "mixed")
            if era == "old":
                await side.post(token, "notifications/roots/list_changed", None, session)
            await until_hidden_lists(pair, side, are_changed=True)
            for name in (exposed_name(VAULT, "payroll_two"), "mixed__secret_wait"):
                await side.modern(WIDE, "tools/call", {"name": name, "arguments": {"x": "no"}})
            # All within the moment for which changes are gathered.
            speak(VAULT, "mixed")
            side.speak("open")
            await until(lambda: "tools/list_changed" in str(messages), 10)
            await until_hidden_lists(pair, side, are_changed=False)
            # Whatever there was to tell comes before this.
            side.speak("open")
            await until(lambda: str(messages).count("tools/list_changed") == 2, 10)
        heard = [plain(message) for message in messages]
        # Whether the roots are asked for once more depends on when the stream was opened.
        asked = [message for message in heard if message.get("method") == "roots/list"]
        return [*asked[:1], *(message for message in heard if message not in asked)]

    async def main(pair: Twins) -> None:
        for side in (pair.full, pair.twin):
            (side.folder / "no.go").touch()
        heard = [await told(pair, side) for side in (pair.full, pair.twin)]
        assert heard[0] == heard[1]

    with Twins(tmp_path, narrow, "bridge", "off", full, kept) as pair:
        pair.run(main(pair))


# ---- what belongs to somebody else


def test_a_session_of_another_token_is_as_if_there_were_none(pair: Twins) -> None:
    async def main() -> None:
        side, token = pair.full, pair.narrow.secret
        session = await side.greet(WIDE)
        for method in ("tools/list", "ping", "notifications/cancelled"):
            stolen = await side.post(token, method, None, session)
            unknown = await side.post(token, method, None, "0" * 32)
            assert stolen.seen == unknown.seen
            assert stolen.status == 404
        gone = await side.http.delete(
            f"{side.url}/mcp",
            headers={**ACCEPT, "authorization": f"Bearer {token}", "mcp-session-id": session},
        )
        assert gone.status_code == 404
        assert (await side.post(WIDE, "ping", None, session)).result == {}
        await side.leave(WIDE, session)

    pair.run(main())


def test_a_parked_question_of_another_token_is_as_if_there_were_none(pair: Twins) -> None:
    async def main() -> None:
        side, token = pair.full, pair.narrow.secret
        name = exposed_name("mixed", "open_ask")
        asked = (await side.modern(WIDE, "tools/call", {"name": name, "arguments": {}})).result
        assert asked["resultType"] == "input_required"
        (key,) = asked["inputRequests"]
        answer = {"inputResponses": {key: {"action": "accept", "content": {"v": "stolen"}}}}
        call = {"name": name, "arguments": {}}
        stolen, unknown = [
            await side.modern(token, "tools/call", call, requestState=state, **answer)
            for state in (asked["requestState"], "toolfold-" + "A" * 32)
        ]
        assert stolen.seen == unknown.seen
        answer["inputResponses"][key]["content"] = {"v": "own"}
        own = await side.modern(
            WIDE, "tools/call", call, requestState=asked["requestState"], **answer
        )
        assert "own" in own.result["content"][0]["text"]

    pair.run(main())


def test_a_call_of_another_token_can_be_neither_cancelled_nor_heard(pair: Twins) -> None:
    async def main() -> None:
        side, token = pair.full, pair.narrow.secret
        session = await side.greet(token)
        mark = f"wait-{pair.narrow.token.name}-{id(pair)}"
        name = exposed_name("mixed", "secret_wait")
        call = {"name": name, "arguments": {"x": mark}, "_meta": {"progressToken": "shared"}}
        waiting = asyncio.create_task(side.modern(WIDE, "tools/call", call))
        await until(lambda: (side.folder / f"{mark}.began").exists())
        for number in range(60):
            cancel = {"requestId": number, "reason": "not mine"}
            await side.post(token, "notifications/cancelled", cancel, session)
        listing = {"_meta": {"progressToken": "shared"}}
        listed = await side.post(token, "tools/list", listing, session)
        assert len(listed.messages) == 1
        (side.folder / f"{mark}.go").touch()
        assert "mixed:secret_wait" in (await waiting).result["content"][0]["text"]
        await side.leave(token, session)

    pair.run(main())


def test_what_a_server_logs_in_anothers_call_is_not_heard(tmp_path: Path) -> None:
    async def main(pair: Twins) -> None:
        side, token = pair.full, pair.narrow.secret
        session = await side.greet(token)
        await side.post(token, "tools/list", {}, session)
        call = {"name": "mixed__secret_wait", "arguments": {"x": "theirs"}}
        theirs = asyncio.create_task(side.modern(WIDE, "tools/call", call))
        await until(lambda: (side.folder / "theirs.began").exists())
        async with side.hearing(token, session) as messages:
            call = {"name": "mixed__open_wait", "arguments": {"x": "ours"}}
            ours = asyncio.create_task(side.post(token, "tools/call", call, session))
            await until(lambda: (side.folder / "ours.began").exists())
            (side.folder / "theirs.go").touch()
            await theirs
            (side.folder / "ours.go").touch()
            messages.extend((await ours).messages)
            side.speak("open")
            await until(lambda: "tools/list_changed" in str(messages), 10)
        assert "theirs" not in str(messages)

    loud = {**CONTENT, "open": {**CONTENT["open"], **SEEN_CHANGE}}
    with Twins(tmp_path, NARROW["patterns"], "bridge", "off", loud) as pair:
        pair.run(main(pair))


# ---- beside the protocol


def test_paths_beside_the_protocol_tell_nothing(pair: Twins) -> None:
    async def main() -> None:
        for path in ("/healthz", "/metrics", "/", "/mcp/", "/status", "/.well-known/x"):
            for token in (pair.narrow.secret, "no-token-of-anybody"):
                seen = []
                for side in (pair.full, pair.twin):
                    headers = {"authorization": f"Bearer {token}"}
                    answer = await side.http.get(f"{side.url}{path}", headers=headers)
                    seen.append((answer.status_code, answer.text))
                assert seen[0] == seen[1]
        wide = {"authorization": f"Bearer {WIDE}"}
        metrics = await pair.full.http.get(f"{pair.full.url}/metrics", headers=wide)
        assert VAULT in metrics.text

    pair.run(main())


def test_a_link_that_leads_to_a_hidden_server_too_leads_where_it_did(tmp_path: Path) -> None:
    def server(name: str) -> Server:
        return scoped(name, tmp_path, {"tools": [tool("link", "Link.")], "resources": []})

    narrow, wide = Principal("narrow", Scope(deny=("@hidden",))), Principal("wide", EVERYTHING)

    async def main() -> None:
        async with gateway(server("one"), server("two"), server("hidden")) as made:
            for who, name in ((narrow, "two__link"), (wide, "hidden__link")):
                async with client(made, who=who) as c:
                    await c.call_tool(name, {"x": "link:///a"})
            async with client(made, who=narrow) as c:
                read = await c.read_resource("link:///a")
                assert read.contents[0].text == "two has link:///a"  # type: ignore[union-attr]

    run(main)


def test_a_hidden_tool_takes_nobodys_name(tmp_path: Path) -> None:
    # The name of a tool that needs a digest may be spelt out by another server.
    digested = exposed_name("a b", "t")
    visible, own = digested.split("__", 1)
    hidden = scoped("a b", tmp_path, {"tools": [tool("t", "Hidden.")]})
    seen = scoped(visible, tmp_path, {"tools": [tool(own, "Seen.")]})

    async def main() -> None:
        narrow = Principal("narrow", Scope(allow=(f"@{visible}",)))
        async with gateway(hidden, seen) as full, gateway(seen) as twin:
            listed = [(await made.list_tools(narrow, "k"))[0] for made in (full, twin)]
            assert listed[0] == listed[1]
            assert [t["description"] for t in listed[1]] == ["Seen."]

    run(main)
