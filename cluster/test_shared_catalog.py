"""The shared catalog beside the embedded search, its tenants beside each other."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest

from cluster.postgres import Postgres
from toolfold import Scope, Tool
from toolfold.demo import demo_catalog
from toolfold.search.hybrid import Hybrid
from toolfold.shared import SharedCatalog, _proposals
from toolfold.store.store import StoreAwayError

TOOLS = list(demo_catalog().tools)
QUERIES = [
    "open a pull request",
    "send an email | schedule a meeting",
    "what does a refund cost",
    "restaurant table reservation",
    "serach for flihgts",
    "créer une issue",
    "GitHub pull request",
    "zzzz",
    "a\0b",
    "'; drop table toolfold.tools; --",
]


def embedded(tools: list[Tool], query: str, limit: int = 5) -> list[tuple[str, float]]:
    found = Hybrid().searcher(tools).search(query, limit)
    return [(tools[match.position].name, pytest.approx(match.score, rel=2e-3)) for match in found]


def shared(catalog: SharedCatalog, query: str, limit: int = 5, **how: Any) -> list[Any]:
    return [(hit.tool.name, hit.score) for hit in catalog.search(query, limit, **how)]


@pytest.mark.parametrize("scanned_to", [8_192, 0], ids=["looked through", "by the indexes"])
def test_hits_and_scores_are_those_of_the_embedded_search(
    address: str, monkeypatch: pytest.MonkeyPatch, scanned_to: int
) -> None:
    monkeypatch.setattr(_proposals, "SCANNED_TO", scanned_to)
    with SharedCatalog(address) as catalog:
        catalog.push(TOOLS)

        for query in QUERIES:
            assert shared(catalog, query) == embedded(TOOLS, query), query


@pytest.mark.parametrize(
    "scope",
    [
        Scope(allow=("@forge", "@mail")),
        Scope(allow=("*",), deny=("@forge",)),
        Scope(allow=("@f*", "@mail")).narrow(allow=("@*a*",)),
        Scope(allow=()),
    ],
    ids=["toolsets", "denied", "narrowed", "nothing"],
)
def test_a_scope_is_searched_as_if_it_were_all_there_is(address: str, scope: Scope) -> None:
    own = [tool for tool in TOOLS if tool in scope]
    with SharedCatalog(address) as catalog:
        catalog.push(TOOLS)

        for query in QUERIES:
            expected = embedded(own, query) if own else []
            assert shared(catalog, query, scope=scope) == expected, query


@pytest.mark.parametrize("scanned_to", [8_192, 0], ids=["looked through", "by the indexes"])
@pytest.mark.parametrize(
    "scope",
    [
        Scope(allow=("forge__*", "mail__*"), deny=("*delete*",)),
        Scope(allow=("*",), deny=("@forge",)).narrow(allow=("*list*", "*get*")),
        Scope(allow=("*",), deny=("*CREATE*",)),
    ],
    ids=["names", "narrowed", "denied"],
)
def test_of_a_scope_by_names_nothing_else_is_found_and_the_sure_is_found_first(
    address: str, monkeypatch: pytest.MonkeyPatch, scope: Scope, scanned_to: int
) -> None:
    monkeypatch.setattr(_proposals, "SCANNED_TO", scanned_to)
    own = [tool for tool in TOOLS if tool in scope]
    with SharedCatalog(address) as catalog:
        catalog.push(TOOLS)

        for query in QUERIES:
            found = catalog.search(query, 10, scope=scope)
            [(first, chance), *_] = [
                (own[match.position], match.score)
                for match in Hybrid().searcher(own).search(query, 1)
            ]
            assert all(hit.tool in scope for hit in found), query
            assert chance < 0.5 or found[0].tool == first, query


def test_a_scope_that_leaves_one_tool_of_a_source_finds_it(address: str) -> None:
    tools = [Tool(f"odd__{i}", "Say a text back.", source="odd") for i in range(17)]
    with SharedCatalog(address) as catalog:
        catalog.push(tools)

        for query in ("say a text back", "odd", "ecko"):
            found = catalog.search(query, scope=Scope(allow=("odd__3",)))
            assert [hit.tool.name for hit in found] == ["odd__3"], query
            assert 0 <= found[0].score <= 1


def test_a_tool_comes_back_as_it_went_in(address: str) -> None:
    strange = Tool(
        "naïve__tool\u2028name",
        "a \0 zero, a \ud7ff and 'quotes'",
        {"type": "object", "properties": {"x": {"enum": ["\0", 1e300, None]}}},
        source="näive",
        toolset="set",
        aliases=("other",),
        annotations={"readOnlyHint": True},
        title="T",
        own_name="tool/name",
    )
    with SharedCatalog(address) as catalog:
        catalog.push([strange])

        assert catalog.find(strange.name) == strange
        assert list(catalog.tools()) == [strange]


def test_a_tool_that_the_database_cannot_hold_is_named_and_costs_no_other(address: str) -> None:
    with SharedCatalog(address) as catalog:
        pushed = catalog.push([Tool("bad\0name"), Tool("one", source="a\0b"), *TOOLS[:3]])

        assert pushed.refused == ("bad\0name", "one")
        assert pushed.added == 3
        assert catalog.search("bad\0name and more", 5) != []


def test_a_push_writes_what_changed_and_nothing_else(address: str) -> None:
    with SharedCatalog(address) as catalog:
        first = catalog.push(TOOLS)
        again = catalog.push(TOOLS)
        renamed = [replace(TOOLS[0], description="Something else entirely."), *TOOLS[2:]]
        found = catalog.diff(renamed)
        changed = catalog.push(renamed, prune=True)

        assert (first.added, first.changed, first.same) == (len(TOOLS), 0, 0)
        assert (again.added, again.changed, again.same) == (0, 0, len(TOOLS))
        assert [tool.name for tool in found.changed] == [TOOLS[0].name]
        assert found.gone == [TOOLS[1].name]
        assert (changed.added, changed.changed, changed.removed) == (0, 1, 1)
        assert catalog.find(TOOLS[1].name) is None
        for query in QUERIES:
            assert shared(catalog, query) == embedded(renamed, query), query


def test_what_is_known_of_all_tools_is_the_same_however_they_came(address: str) -> None:
    chance = random.Random(7)
    with SharedCatalog(address) as catalog, SharedCatalog(address, tenant="other") as other:
        for _ in range(12):
            catalog.push(chance.sample(TOOLS, 40))
            catalog.remove([tool.name for tool in chance.sample(TOOLS, 25)])
        other.push(list(catalog.tools()))
        left = list(catalog.tools())

        for query in QUERIES:
            expected = embedded(left, query)
            assert shared(catalog, query) == expected, query
            assert shared(other, query) == expected, query
        catalog.remove([tool.name for tool in left])
        assert catalog.search("open a pull request") == []
        assert catalog.sources() == []
    with psycopg.connect(address) as connection:
        connection.execute("select set_config('toolfold.tenant', 'default', false)")
        for table in ("tools", "terms", "sources"):
            row = connection.execute(f"select count(*) from toolfold.{table}").fetchone()  # pyright: ignore[reportArgumentType]
            assert row == (0,), table
        row = connection.execute("select size, vector_sum from toolfold.catalogs").fetchone()
        assert row is not None and row[0] == 0
        assert np.abs(np.frombuffer(row[1])).max() < 1e-9


def test_a_tenant_sees_nothing_of_another(address: str) -> None:
    with SharedCatalog(address, tenant="a") as a, SharedCatalog(address, tenant="b") as b:
        a.push(TOOLS)
        alone = Tool("lamp__switch", "Switch a lamp on or off.", source="lamp")
        b.push([alone])

        for query in QUERIES:
            assert shared(b, query) == embedded([alone], query), query
        assert b.find(TOOLS[0].name) is None
        assert b.remove([TOOLS[0].name]) == 0
        assert a.find(TOOLS[0].name) == TOOLS[0]
        assert [source.name for source in b.sources()] == ["lamp"]
        assert list(b.tools()) == [alone]
        assert b.diff([TOOLS[0]]).added == [TOOLS[0]]


@pytest.mark.parametrize("table", ["tools", "terms", "sources", "catalogs"])
def test_the_database_itself_keeps_tenants_apart(address: str, table: str) -> None:
    with SharedCatalog(address, tenant="a") as a:
        a.push(TOOLS[:3])
    with psycopg.connect(address, autocommit=True) as connection:

        def rows(tenant: str | None) -> int:
            if tenant is not None:
                connection.execute("select set_config('toolfold.tenant', %s, false)", (tenant,))
            found = connection.execute(f"select count(*) from toolfold.{table}")  # pyright: ignore[reportArgumentType]
            return found.fetchall()[0][0]

        assert rows(None) == 0
        assert rows("b") == 0
        assert rows("a") > 0
        with pytest.raises(psycopg.Error):
            connection.execute("select set_config('toolfold.tenant', 'b', false)")
            connection.execute(
                "insert into toolfold.terms (tenant, term, holders) values ('a', 'x', 1)"
            )


def test_two_who_push_at_once_lose_nothing(address: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with SharedCatalog(address) as catalog:
        parts = [TOOLS[i::4] for i in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(catalog.push, [*parts, *parts]))

        assert {tool.name for tool in catalog.tools()} == {tool.name for tool in TOOLS}
        for query in QUERIES:
            assert shared(catalog, query) == embedded(TOOLS, query), query


def test_a_database_that_is_away_is_said_without_its_password() -> None:
    with pytest.raises(StoreAwayError) as raised:
        SharedCatalog(
            "host=127.0.0.1 port=1 user=app password=hunter2 connect_timeout=1"
        ).__enter__()

    assert "hunter2" not in f"{raised.value} {raised.value.hint}"


def test_after_a_restart_of_the_database_a_search_goes_on(postgres: Postgres, address: str) -> None:
    with SharedCatalog(address) as catalog:
        catalog.push(TOOLS[:20])
        before = shared(catalog, "open an issue")
        postgres.stop("immediate")
        with pytest.raises(StoreAwayError):
            catalog.search("open an issue")
        postgres.start()

        end = time.monotonic() + 20
        while True:  # it is looked for, several times a second
            try:
                found = shared(catalog, "open an issue")
                break
            except StoreAwayError:
                assert time.monotonic() < end
                time.sleep(0.05)
        assert found == before
