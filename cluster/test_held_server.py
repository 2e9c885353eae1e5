"""What replicas ask of the one that runs a server, and what they take for an answer."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from cluster.postgres import Postgres
from cluster.serving import book, soon
from toolfold.scope import Scope
from toolfold.serve.replica import forwarded_calls as words
from toolfold.serve.replica.forwarded_connection import ForwardedConnection, Holder
from toolfold.serve.replica.held_server import HeldServer
from toolfold.serve.replica.membership import Membership
from toolfold.serve.replica.servers_once import ServersOnce
from toolfold.serve.replica.tenure import Tenure
from toolfold.sources.mcp._server_errors import ServerDownError
from toolfold.sources.mcp.connection import Params, is_gone, is_unheard
from toolfold.sources.mcp.mcp_source import McpSource
from toolfold.sources.mcp.server import Server
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.leases import Lease, Leases, now
from toolfold.store.postgres.line import Line
from toolfold.store.postgres.replicas import SILENCE, Replicas
from toolfold.tool import Json

Opener = Callable[..., Database]
SERVER = str(Path(__file__).with_name("single_server.py"))


@asynccontextmanager
async def held(
    database: Database, folder: Path, scope: Scope, until: float
) -> AsyncGenerator[tuple[HeldServer, McpSource]]:
    args = ("-S", "-E", SERVER, str(folder / "book"))
    server = Server("one", command=sys.executable, args=args, deny=("grow",))

    async def take(name: str) -> Lease:
        return Lease(name, 7, until)

    async with McpSource(server) as source:
        tenure = Tenure(Lease("one", 7, until), take)
        yield HeldServer(Replicas(database, "here"), tenure, source, scope), source
        await tenure.end()


def call(name: str) -> dict[str, Json]:
    return {"method": "tools/call", "params": {"name": name, "arguments": {"x": "a"}}}


def test_what_is_not_served_here_is_not_run_for_others(
    address: str, open_database: Opener, tmp_path: Path
) -> None:
    async def main() -> None:
        scope = Scope(deny=("one__slow",))
        other = uuid.uuid4()
        async with held(open_database(address), tmp_path, scope, now() + 60) as (server, source):
            answered = await server.answer(source, other, call("write"))
            assert answered["token"] == 7
            assert answered["result"]["content"][0]["text"] == "a"
            refused: list[dict[str, Json]] = [
                call("grow"),  # denied by the server's entry
                call("slow"),  # denied by the gateway's scope
                call("nothing"),
                {"method": "logging/setLevel", "params": {"level": "debug"}},
                {"method": "tools/call", "params": None},
                {"method": "tools/call", "list": "tools"},
                {},
            ]
            for content in refused:
                assert "error" in await server.answer(source, other, content), content
            listed = await server.answer(source, other, {"method": "tools/list", "list": "tools"})
            assert len(listed["result"]["items"]) == 4
        book = (tmp_path / "book").read_text("utf-8")
        assert book.count("call") == 1

    asyncio.run(asyncio.wait_for(main(), 60))


def test_nothing_is_run_when_the_lease_is_over(
    address: str, open_database: Opener, tmp_path: Path
) -> None:
    async def main() -> None:
        async with held(open_database(address), tmp_path, Scope(), now() + 4) as (server, source):
            other = uuid.uuid4()
            assert "result" in await server.answer(source, other, call("write"))
            await asyncio.wait_for(server.tenure.over.wait(), 10)
            answered = await server.answer(source, other, call("write"))
            with pytest.raises(MCPError) as raised:
                words.unwrapped(answered)
            assert is_unheard(raised.value)
        assert (tmp_path / "book").read_text("utf-8").count("call") == 1

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_change_that_comes_while_others_are_told_on_is_told_on_as_well(
    address: str, open_database: Opener, tmp_path: Path
) -> None:
    async def main() -> None:
        there = Membership(open_database(address), "there")
        heard: set[str] = set()

        async def told(content: Any) -> None:
            heard.add(content["params"]["uri"])

        there.replicas.on(words.TOLD, told)
        async with (
            there.opened(),
            held(open_database(address), tmp_path, Scope(), now() + 60) as (server, source),
        ):
            assert source.connection is not None
            server.join(there.replicas.id, source.connection)
            uris = [f"file:///{number}" for number in range(500)]
            for uri in uris[:-1]:
                server.told("notifications/resources/updated", {"uri": uri})
            await asyncio.to_thread(soon, lambda: heard, 10)
            assert len(heard) < 400
            server.told("notifications/resources/updated", {"uri": uris[-1]})
            await asyncio.to_thread(soon, lambda: heard == {*uris}, 20)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_what_changes_while_the_database_is_away_is_told_when_it_is_back(
    postgres_alone: tuple[Postgres, str], open_database: Opener, tmp_path: Path
) -> None:
    postgres, address = postgres_alone

    async def main() -> None:
        there = Membership(open_database(address), "there")
        heard: set[str] = set()

        async def told(content: Any) -> None:
            heard.add(content["params"]["uri"])

        there.replicas.on(words.TOLD, told)
        async with (
            there.opened(),
            held(open_database(address), tmp_path, Scope(), now() + 60) as (server, source),
        ):
            assert source.connection is not None
            server.join(there.replicas.id, source.connection)
            server.told("notifications/resources/updated", {"uri": "file:///b"})
            await asyncio.to_thread(soon, lambda: heard == {"file:///b"}, 10)
            await asyncio.to_thread(postgres.stop, "immediate")
            server.told("notifications/resources/updated", {"uri": "file:///a"})
            await asyncio.sleep(1)
            await asyncio.to_thread(postgres.start)
            await asyncio.to_thread(soon, lambda: heard == {"file:///a", "file:///b"}, 20)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_replica_that_is_away_for_a_moment_hears_of_changes_when_it_is_back(
    address: str, open_database: Opener, tmp_path: Path
) -> None:
    async def main() -> None:
        there = Membership(open_database(address), "there")
        heard: list[str] = []

        async def told(content: Any) -> None:
            heard.append(content["params"]["uri"])

        there.replicas.on(words.TOLD, told)
        async with held(open_database(address), tmp_path, Scope(), now() + 60) as (server, source):
            assert source.connection is not None
            server.join(there.replicas.id, source.connection)
            server.told("notifications/resources/updated", {"uri": "file:///a"})
            await asyncio.sleep(1)
            async with there.opened():
                await asyncio.to_thread(soon, lambda: heard == ["file:///a"], 10)
                server.told("notifications/resources/updated", {"uri": "file:///b"})
                await asyncio.to_thread(soon, lambda: heard == ["file:///a", "file:///b"], 10)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_whoever_was_away_for_so_long_that_others_took_it_for_gone_joins_anew(
    postgres_alone: tuple[Postgres, str], open_database: Opener
) -> None:
    postgres, address = postgres_alone

    async def main() -> None:
        here = Membership(open_database(address), "here")
        holder = uuid.uuid4()
        lease = Leases(Line(open_database(address)), holder, seconds=60).take("server one")
        assert lease is not None
        once = ServersOnce(here)
        async with here.opened():
            away = asyncio.create_task(once.moved_on("one", lease.token))
            await asyncio.sleep(1)
            await asyncio.to_thread(postgres.stop, "immediate")
            await asyncio.sleep(SILENCE)
            assert not away.done()
            await asyncio.to_thread(postgres.start)
            assert await asyncio.wait_for(away, 20) == (holder, lease.token)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_what_clients_watch_is_said_when_the_database_is_back(
    postgres_alone: tuple[Postgres, str], open_database: Opener
) -> None:
    postgres, address = postgres_alone

    async def main() -> None:
        databases = [open_database(address) for _ in range(2)]
        here, there = (Membership(each, name) for each, name in zip(databases, "ab", strict=True))
        heard: list[Any] = []

        async def watched(content: Any) -> None:
            heard.append(content["uris"])

        there.replicas.on(words.WATCH, watched)
        once = ServersOnce(here)
        async with here.opened(), there.opened():
            connection = ForwardedConnection(
                "one", Holder(there.replicas.id, 3, {}), once, Nobody()
            )
            await asyncio.to_thread(postgres.stop, "immediate")
            for method, uri in (("subscribe", "a"), ("subscribe", "b"), ("unsubscribe", "a")):
                await connection.request(f"resources/{method}", {"uri": uri}, timeout=20)
            await asyncio.to_thread(postgres.start)
            await asyncio.to_thread(soon, lambda: heard and heard[-1] == ["b"], 20)

    asyncio.run(asyncio.wait_for(main(), 60))


class Nobody:
    """Listens to nothing."""

    async def asked(self, method: str, params: Params) -> dict[str, Json]:
        raise NotImplementedError

    def told(self, method: str, params: Params) -> None:
        pass

    def logged(self, params: Params) -> None:
        pass


def test_an_answer_of_an_earlier_tenure_is_turned_away(address: str, open_database: Opener) -> None:
    async def main() -> None:
        here, there = (Membership(open_database(address), name) for name in ("here", "there"))
        tokens = iter([3, 2, 3])

        async def answer(content: Any) -> dict[str, Json]:
            return words.answer_result(next(tokens), {"said": content["params"]["x"]})

        there.replicas.on(words.REQUEST, answer)
        once = ServersOnce(here)
        async with here.opened(), there.opened():
            connection = ForwardedConnection(
                "one", Holder(there.replicas.id, 3, {}), once, Nobody()
            )

            async def ask(x: int) -> dict[str, Json]:
                return await connection.request("tools/call", {"x": x}, timeout=20)

            assert await ask(1) == {"said": 1}
            assert (lease := await once.take("one")) is not None
            for _ in range(2):
                assert (lease := await once.take("one", anew=True)) is not None
            assert once.newest("one") == lease.token == 3
            with pytest.raises(MCPError) as raised:
                await ask(2)
            assert is_gone(raised.value)
            assert not is_unheard(raised.value)
            assert await ask(3) == {"said": 3}

    asyncio.run(asyncio.wait_for(main(), 60))


def test_parted_from_the_database_it_ends_before_its_lease_does(
    postgres_alone: tuple[Postgres, str], open_database: Opener, tmp_path: Path
) -> None:
    postgres, address = postgres_alone
    written = tmp_path / "book"
    args = ("-S", "-E", SERVER, str(written))
    server = Server("one", command=sys.executable, args=args, run="once", start_timeout=3)

    async def main() -> None:
        here = Membership(open_database(address), "here")
        once = ServersOnce(here, seconds=6)
        placed = once.placement(server)
        async with here.opened(), McpSource(server, placement=placed) as source:
            arguments = {"x": "a", "seconds": 30}
            params = {"name": "slow", "arguments": arguments}
            slow = asyncio.create_task(source.request("tools/call", params))
            await asyncio.to_thread(soon, lambda: "call" in str(book(written)))
            began = now()
            await asyncio.to_thread(postgres.stop, "immediate")
            with pytest.raises(ServerDownError) as raised:
                await slow
            assert raised.value.lost
            [pid] = [pid for what, _, pid in book(written) if what == "start"]
            await asyncio.to_thread(soon, lambda: not Path(f"/proc/{pid}").exists())
            assert now() - began < 6
            # Nobody can say where it runs: it is not started.
            with pytest.raises(ServerDownError, match="cannot be found out"):
                await source.request("tools/call", params)
            assert len([line for line in book(written) if line[0] == "start"]) == 1
            postgres.start()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_what_nobody_has_heard_is_known_for_that(address: str, open_database: Opener) -> None:
    async def main() -> None:
        here = Membership(open_database(address), "here")
        once = ServersOnce(here)
        async with here.opened():
            holder = Holder(uuid.uuid4(), 1, {})
            connection = ForwardedConnection("one", holder, once, Nobody())
            with pytest.raises(MCPError) as raised:
                await connection.request("tools/call", {}, timeout=20)
            assert is_unheard(raised.value)

    asyncio.run(asyncio.wait_for(main(), 60))
