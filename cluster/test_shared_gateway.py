"""A gateway over a shared catalog: what it finds there, what it runs, what it writes there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bench import data
from mcp import Client

from cluster.postgres import Postgres
from support.gateways import client, gateway, odd, run, said, until
from support.served import Served
from support.servers.place import prepared
from toolfold import Catalog, Scope, Tool
from toolfold.config.served_profiles import ServedProfile
from toolfold.serve.catalog.shared_tools import SharedTools
from toolfold.serve.gateway import Gateway
from toolfold.serve.principals import Principal
from toolfold.serve.trust.store import TrustStore
from toolfold.serve.trust.verdicts import Trust, approve
from toolfold.settings import Settings
from toolfold.shared import SharedCatalog
from toolfold.shared.shared_catalog import CHANNEL
from toolfold.sources.mcp.server import Server
from toolfold.store.files import FileDocuments
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.news import News

ECHO = Tool(
    "odd__echo",
    "Say a text back.",
    {"type": "object", "properties": {"x": {"type": "string", "description": "A text."}}},
    source="odd",
)


@asynccontextmanager
async def sharing(
    address: str, *servers: Server, **more: Any
) -> AsyncGenerator[tuple[Gateway, SharedCatalog]]:
    """A gateway that searches a shared catalog, as `toolfold serve` makes it."""
    with Database(address) as database:
        catalog = SharedCatalog.over(database)
        known = {source.name for source in catalog.sources()}
        shared = partial(SharedTools, catalog)
        async with gateway(*servers, shared=shared, known=known, **more) as made:
            if made.shared is not None:
                with News(database, {CHANNEL: made.shared.listener()}) as news:
                    await until(news.is_listening.is_set)
                    yield made, catalog


async def search(c: Client, query: str) -> str:
    return said(await c.call_tool("tool_search", {"query": query}))


async def call(c: Client, name: str, **arguments: Any) -> str:
    return said(await c.call_tool("tool_call", {"name": name, "arguments": arguments}))


def test_what_a_server_lists_is_shared_found_and_run(address: str) -> None:
    async def main() -> None:
        async with sharing(address, odd("odd")) as (made, catalog), client(made) as c:
            await until(lambda: catalog.find("odd__echo") is not None, 20)

            assert [tool.name for tool in (await c.list_tools()).tools] == [
                "tool_search",
                "tool_describe",
                "tool_call",
            ]
            assert "odd__echo(x?: string)" in await search(c, "say a text back")
            assert await call(c, "odd__echo", x="hello") == "odd:hello"
            assert said(await c.call_tool("odd__echo", {"x": "directly"})) == "odd:directly"
            unknown = await c.call_tool("tool_call", {"name": "odd__ecko", "arguments": {}})
            assert unknown.is_error and "odd__echo" in said(unknown)

    run(main)


def test_a_server_that_the_catalog_knows_is_started_at_its_first_call(address: str) -> None:
    async def main() -> None:
        with SharedCatalog(address) as catalog:
            catalog.push([ECHO])
        async with sharing(address, odd("odd")) as (made, _), client(made) as c:
            found = await search(c, "say a text back")
            before = made.pool.upstreams["odd"].state
            answer = await call(c, "odd__echo", x="hello")

            assert "odd__echo" in found
            assert before == "waiting"
            assert answer == "odd:hello"
            assert made.pool.upstreams["odd"].state == "ready"

    run(main)


def test_what_runs_is_what_the_server_lists_now_within_the_same_bounds(address: str) -> None:
    other = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    reader = Principal("reader", Scope(allow=("@harmless", "odd__echo")))

    async def main() -> None:
        with SharedCatalog(address) as catalog:
            catalog.push(
                [
                    ECHO,
                    Tool("odd__slow", "Take a while.", other, source="odd"),
                    Tool("odd__gone", "Was there once.", source="odd"),
                    Tool("odd__pid", "Tell the process id.", source="odd"),
                    Tool("odd__wipe", "Destroy everything.", source="odd", toolset="harmless"),
                    Tool("else__where", "Is elsewhere.", source="else"),
                ]
            )
        server, strict = odd("odd", deny=("pid",)), {"unknown_arguments": "refuse"}
        async with (
            sharing(address, server, settings=strict) as (made, _),
            client(made) as c,
            client(made, who=reader) as r,
        ):
            assert "else__where" not in await search(c, "is elsewhere")
            assert "else__where" not in await call(c, "else__anything")
            assert "odd__slow(x?: string)" in await call(c, "odd__slow", n=1)
            for name in ("odd__gone", "odd__pid"):
                refused = await c.call_tool("tool_call", {"name": name, "arguments": {}})
                assert refused.is_error and "not available" in said(refused), name
            assert "not available" in await call(r, "odd__wipe")
            assert await call(r, "odd__echo", x="mine") == "odd:mine"

    run(main)


def test_tenants_on_one_gateway_never_see_each_others_tools(address: str) -> None:
    a = Principal("a", tenant="a")
    b = Principal("b", Scope(allow=("@two",)), tenant="b")

    async def main() -> None:
        with SharedCatalog(address, tenant="a") as own:
            own.push([Tool("one__echo", "Say a text back.", ECHO.parameters, source="one")])
        with SharedCatalog(address, tenant="b") as own:
            own.push(
                [
                    Tool("two__echo", "Say a text back.", ECHO.parameters, source="two"),
                    Tool("one__pid", "Tell the process id.", source="one"),
                ]
            )
        async with (
            sharing(address, odd("one"), odd("two")) as (made, catalog),
            client(made, who=a) as of_a,
            client(made, who=b) as of_b,
            client(made) as of_neither,
        ):
            await until(lambda: catalog.find("two__echo") is not None, 20)
            for c, own, others in ((of_a, "one", "two"), (of_b, "two", "one")):
                [listing, *_] = (await c.list_tools()).tools
                assert own in str(listing.description) and others not in str(listing.description)
                for query in ("say a text back", "tell the process id", f"{others}__echo"):
                    assert f"{others}__" not in (await search(c, query)).partition("\n")[2]
                assert await call(c, f"{own}__echo", x="hi") == f"{own}:hi"
                for name in (f"{others}__echo", f"{others}__pid", f"{own}__pid"):
                    for how in ("tool_call", "tool_describe"):
                        unknown = await c.call_tool(how, {"name": name})
                        assert unknown.is_error, (how, name)
                    assert (await c.call_tool(name, {})).is_error
            assert "one__echo" in await search(of_neither, "say a text back")

    run(main)


def test_for_a_reader_only_what_changes_nothing_is_there(address: str) -> None:
    async def main() -> None:
        reader = Principal("reader", read_only=True)
        async with (
            sharing(address, odd("odd")) as (made, catalog),
            client(made, who=reader) as c,
        ):
            await until(lambda: catalog.find("odd__echo") is not None, 20)

            assert "odd__wipe" not in await search(c, "destroy everything")
            assert (await c.call_tool("tool_call", {"name": "odd__wipe"})).is_error
            assert await call(c, "odd__echo", x="read") == "odd:read"

    run(main)


def test_under_a_profile_a_shared_catalog_is_folded_as_the_profile_says(address: str) -> None:
    hints = {"odd__echo": {"readOnlyHint": False}}
    profiles = (
        ServedProfile("open", settings=Settings(cache_dir="off", never_defer=("odd__echo",))),
        ServedProfile("first", servers=("one",)),
        ServedProfile(
            "reads", read_only=True, settings=Settings(cache_dir="off", annotations=hints)
        ),
    )
    under_open, under_first, under_reads = (
        Principal("me", profile=profile.name) for profile in profiles
    )

    async def main() -> None:
        async with (
            sharing(address, odd("odd"), odd("one"), profiles=profiles) as (made, catalog),
            client(made) as c,
            client(made, who=made.narrowed(under_open)) as opened,
            client(made, who=made.narrowed(under_first)) as first,
            client(made, who=made.narrowed(under_reads)) as reads,
        ):
            await until(lambda: catalog.find("odd__echo") and catalog.find("one__echo"), 20)

            async def listed(c: Client) -> set[str]:
                return {tool.name for tool in (await c.list_tools()).tools}

            assert await listed(opened) - await listed(c) == {"odd__echo"}
            assert said(await opened.call_tool("odd__echo", {"x": "open"})) == "odd:open"
            assert "odd__" not in (await search(first, "say a text back")).partition("\n")[2]
            assert await call(first, "one__echo", x="mine") == "one:mine"
            assert "odd:" not in await call(first, "odd__echo", x="not mine")
            found = (await search(reads, "say a text back")).partition("\n")[2]
            assert "one__echo" in found and "odd__echo" not in found
            assert "odd:" not in await call(reads, "odd__echo", x="changes something here")

    run(main)


def test_what_waits_for_a_person_is_found_by_nobody_until_it_is_approved(
    address: str, tmp_path: Path
) -> None:
    async def main() -> None:
        store = TrustStore(FileDocuments(tmp_path))
        trust = Trust(store, "all")
        async with sharing(address, odd("odd"), trust=trust) as (made, catalog), client(made) as c:
            await until(lambda: list(catalog.tools(waiting=True)), 20)

            assert not list(catalog.tools())
            assert "odd__echo" not in await search(c, "say a text back")
            waiting = store.load()["odd"]["odd__echo"].waiting
            assert waiting is not None
            store.update(lambda book: approve(book, "odd", "odd__echo", waiting.fingerprint, 1.0))
            await made.pool.judge_again(["odd"])
            await until(lambda: catalog.find("odd__echo") is not None, 20)

            assert [tool.name for tool in catalog.tools()] == ["odd__echo"]
            assert await call(c, "odd__echo", x="approved") == "odd:approved"
            assert "not available" in await call(c, "odd__wipe")

    run(main)


def test_another_gateway_hears_of_a_change_and_tells_its_clients_where_they_see_it(
    address: str,
) -> None:
    told: list[str] = []
    blind = Principal("blind", Scope(allow=("@none",)))

    def noting(name: str) -> Any:
        async def note(message: Any) -> None:
            if "ToolListChanged" in type(getattr(message, "root", message)).__name__:
                told.append(name)

        return note

    async def main() -> None:
        async with (
            sharing(address, odd("odd")) as (first, catalog),
            client(first) as c,
            sharing(address, odd("odd")) as (second, _),
            client(second, message_handler=noting("sees")) as other,
            client(second, who=blind, message_handler=noting("blind")) as blinded,
        ):
            await until(lambda: catalog.find("odd__grow") is not None, 20)
            await other.list_tools()
            await blinded.list_tools()
            await call(c, "odd__grow", x="more")
            await until(lambda: catalog.find("odd__more") is not None, 20)
            await until(lambda: "sees" in told, 20)

            assert "odd__more" in await search(other, "more")
            assert "blind" not in told

    run(main)


def test_while_the_database_is_away_what_was_found_is_called_and_a_search_says_so(
    postgres_alone: tuple[Postgres, str],
) -> None:
    postgres, address = postgres_alone

    async def main() -> None:
        async with sharing(address, odd("odd")) as (made, catalog), client(made) as c:
            await until(lambda: catalog.find("odd__echo") is not None, 20)
            await search(c, "say a text back")
            await asyncio.to_thread(postgres.stop, "immediate")
            away = await c.call_tool("tool_search", {"query": "say a text back"})
            known = await call(c, "odd__echo", x="still here")
            listed = await c.list_tools()
            await asyncio.to_thread(postgres.start)

            assert away.is_error and "cannot be reached now" in said(away)
            assert known == "odd:still here"
            assert len(listed.tools) == 3
            end = asyncio.get_running_loop().time() + 20
            while "odd__echo" not in await search(c, "say a text back"):
                assert asyncio.get_running_loop().time() < end
                await asyncio.sleep(0.1)

    run(main)


@pytest.mark.slow
def test_the_process_shares_what_its_server_lists_and_next_time_starts_it_when_called(
    address: str, tmp_path: Path
) -> None:
    def found(served: Served, number: int) -> str:
        params = {"name": "tool_search", "arguments": {"query": "the tool echo"}}
        served.write({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        return served.answer(number)["content"][0]["text"]

    with SharedCatalog(address) as catalog, prepared(tmp_path) as place:
        place.add("wild").serve(store=address, catalog="shared")
        with Served(place) as served:
            served.greet()
            served.wait_for(r"wild in the shared catalog: \d+ new")
            assert catalog.find("wild__echo") is not None
            assert "wild__echo" in found(served, 90)
            assert served.call("wild__echo", "once") == "wild:once"
            served.end("SIGTERM")
        with Served(place) as served:
            served.greet()
            assert "wild__echo" in found(served, 90)
            before = len(place.left())
            assert served.call("wild__echo", "again") == "wild:again"
            assert (before, len(place.left())) == (1, 2)


def resident(pid: int) -> int:
    """What a process holds of the memory, in kilobytes."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(status.partition("VmRSS:")[2].split()[0])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(os.name != "posix" or not Path("/proc/self").exists(), reason="needs /proc")
def test_a_gateways_memory_does_not_grow_with_the_catalog(address: str, tmp_path: Path) -> None:
    if data.corpora() is None:
        pytest.skip("the corpora are absent")
    sizes: dict[int, int] = {}
    hits: dict[int, int] = {}
    with SharedCatalog(address) as catalog, prepared(tmp_path) as place:
        place.add("wild").serve(store=address, catalog="shared")
        every = list(Catalog.read(list(data.catalog("seal-4076").tools)).tools)
        for count in (226, len(every)):
            catalog.push(
                [
                    Tool(f"wild__{t.name}", t.description, t.parameters, source="wild")
                    for t in every[:count]
                ]
            )
            with Served(place) as served:
                served.greet()
                for number, query in enumerate(data.queries("short", 40), 1):
                    params = {"name": "tool_search", "arguments": {"query": query}}
                    served.write({
                        "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params,
                    })  # fmt: skip
                    found = served.answer(number)["content"][0]["text"]
                    hits[count] = hits.get(count, 0) + ("wild__" in found)
                sizes[count] = resident(served.process.pid)

    small, large = sizes.values()
    assert all(found > 10 for found in hits.values()), hits
    assert large - small < 16 * 1024, sizes
