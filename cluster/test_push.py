"""Filling the shared catalog: batches, workers, streams, failures; what is known of all tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.postgres import APP
from toolfold import Tool
from toolfold.demo import demo_catalog
from toolfold.shared import SharedCatalog, _proposals, _push, shared_catalog
from toolfold.store.postgres import migrations
from toolfold.store.postgres.migrations import migrate

TOOLS = list(demo_catalog().tools)
TENANTS = (f"tenant {number}" for number in count())


def known(address: str, tenant: str) -> dict[str, Any]:
    """Return what the database says of all tools of a tenant, in an order of its own."""
    with psycopg.connect(address) as connection:
        connection.execute("select set_config('toolfold.tenant', %s, false)", (tenant,))
        terms = connection.execute("select term, holders from toolfold.terms").fetchall()
        sources = connection.execute(
            "select source, toolsets, size, lengths, filled, vector_sum, mean::text, terms, holders"
            " from toolfold.sources"
        ).fetchall()
        whole = connection.execute(
            "select size, lengths, filled, vector_sum, moment from toolfold.catalogs"
        ).fetchone()
    assert whole is not None
    return {
        "terms": dict(terms),
        "sources": {
            row[0]: (sorted(row[1]), *row[2:7], dict(zip(row[7], row[8], strict=True)))
            for row in sources
        },
        "whole": whole[:4],
        "moment": np.frombuffer(whole[4]),
    }


def rows(address: str, tenant: str) -> list[Any]:
    """Return the tools of a tenant as they are written."""
    columns = (
        "name, source, digest, toolset, definition, made_by, term_count, document, vector::text"
    )
    with psycopg.connect(address) as connection:
        connection.execute("select set_config('toolfold.tenant', %s, false)", (tenant,))
        return connection.execute(
            f"select {columns} from toolfold.tools order by name"  # pyright: ignore[reportArgumentType]
        ).fetchall()


def assert_as_pushed_afresh(address: str, tenant: str, tools: list[Tool]) -> None:
    fresh = next(TENANTS)
    with SharedCatalog(address, tenant=fresh) as catalog:
        catalog.push(tools)
    found, expected = known(address, tenant), known(address, fresh)
    assert np.allclose(found.pop("moment"), expected.pop("moment"), atol=1e-9)
    assert found == expected
    assert rows(address, tenant) == rows(address, fresh)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> int:
    """Ten tools make a batch."""
    for module in (_push, shared_catalog):
        monkeypatch.setattr(module, "BATCH", 10)
    return 10


changes = st.lists(
    st.tuples(
        st.sampled_from(["push", "change", "remove", "prune"]),
        st.lists(st.integers(0, 39), min_size=1, max_size=25, unique=True),
    ),
    min_size=1,
    max_size=5,
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(changes=changes)
def test_what_is_known_of_all_tools_is_that_of_a_fresh_push(
    address: str, small_batches: int, changes: list[tuple[str, list[int]]]
) -> None:
    tenant = next(TENANTS)
    left: dict[str, Tool] = {}
    with SharedCatalog(address, tenant=tenant) as catalog:
        catalog.push([TOOLS[40]])
        left[TOOLS[40].name] = TOOLS[40]
        for number, (kind, places) in enumerate(changes):
            some = [TOOLS[i] for i in places]
            if kind == "remove":
                catalog.remove([tool.name for tool in some])
                left = {name: t for name, t in left.items() if name not in {s.name for s in some}}
                continue
            if kind == "change":
                some = [replace(t, description=f"{t.description} Change {number}.") for t in some]
            catalog.push(some, prune=kind == "prune")
            if kind == "prune":
                pruned = {tool.source for tool in some}
                left = {name: tool for name, tool in left.items() if tool.source not in pruned}
            left |= {tool.name: tool for tool in some}

    assert_as_pushed_afresh(address, tenant, list(left.values()))


def test_a_batch_that_fails_leaves_nothing_and_takes_nothing_from_those_before_it(
    address: str, small_batches: int
) -> None:
    def breaking() -> Iterator[Tool]:
        yield from TOOLS[:25]
        raise OSError("the list broke off")

    with SharedCatalog(address) as catalog:
        with pytest.raises(OSError, match="broke off"):
            catalog.push(breaking())
        left = list(catalog.tools())

        assert len(left) % small_batches == 0
        assert_as_pushed_afresh(address, "default", left)
        assert catalog.push(TOOLS).added == len(TOOLS) - len(left)
    assert_as_pushed_afresh(address, "default", TOOLS)


def test_a_batch_that_the_database_refuses_leaves_nothing(
    empty_database: Callable[[], tuple[str, str]], small_batches: int
) -> None:
    owner, address = empty_database()
    with psycopg.connect(owner, autocommit=True) as connection:
        migrate(connection, APP)
        # The last thing that a batch writes is refused from the third batch on.
        connection.execute(
            "alter table toolfold.catalogs add constraint small check (size <= 25) not valid"
        )
    with SharedCatalog(address) as catalog:
        with pytest.raises(psycopg.errors.CheckViolation):
            catalog.push(TOOLS[:40])

        assert {tool.name for tool in catalog.tools()} == {tool.name for tool in TOOLS[:20]}
        assert_as_pushed_afresh(address, "default", TOOLS[:20])


def test_processes_write_what_one_thread_writes(address: str, small_batches: int) -> None:
    with_function = replace(TOOLS[0], function=lambda: None)
    with SharedCatalog(address, tenant="processes") as catalog:
        pushed = catalog.push([with_function, *TOOLS[1:35]], workers=2)

    assert pushed.added == 35
    assert_as_pushed_afresh(address, "processes", TOOLS[:35])


def test_a_stream_is_pushed_as_it_comes_and_says_how_far_it_is(
    address: str, small_batches: int
) -> None:
    told: list[tuple[int, int]] = []
    with SharedCatalog(address) as catalog:
        catalog.push(TOOLS[:12])
        pushed = catalog.push(
            (tool for tool in TOOLS[:35]), progress=lambda done, all: told.append((done, all))
        )

        assert (pushed.added, pushed.same) == (23, 12)
        assert told[-1] == (35, 35)
        assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_of_tools_of_one_name_the_last_is_kept(address: str) -> None:
    other = replace(TOOLS[0], description="Something else entirely.")
    with SharedCatalog(address) as catalog:
        catalog.push([TOOLS[0], other, TOOLS[1]])

        assert catalog.find(TOOLS[0].name) == other
        assert_as_pushed_afresh(address, "default", [other, TOOLS[1]])


def test_the_indexes_of_large_catalogs_are_built_when_one_is_large(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_indexed() -> bool:
        with psycopg.connect(address) as connection:
            return connection.execute("select toolfold.has_large_indexes()").fetchall()[0][0]

    monkeypatch.setattr(_proposals, "SCANNED_TO", 50)
    with SharedCatalog(address) as catalog:
        catalog.push(TOOLS[:50])
        assert not is_indexed()
        catalog.push(TOOLS)
        assert is_indexed()
        catalog.push([replace(TOOLS[0], description="Something else entirely.")])

        assert catalog.search("something else entirely", 1)[0].tool.name == TOOLS[0].name


def test_what_an_older_version_counted_by_source_is_kept(
    empty_database: Callable[[], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, _ = empty_database()
    steps = migrations.known()
    with psycopg.connect(owner, autocommit=True) as connection:
        monkeypatch.setattr(migrations, "known", lambda: [s for s in steps if s.version < 5])
        migrate(connection, APP)
        connection.execute(
            "insert into toolfold.sources"
            " (tenant, source, toolsets, size, lengths, filled, vector_sum, mean)"
            " values ('a', 'forge', '{}', 3, '{}', '{}', '', array_fill(0, array[256])::vector)"
        )
        connection.execute(
            "insert into toolfold.source_terms values"
            " ('a', 'pull', 'forge', 2), ('a', 'issu', 'forge', 3), ('b', 'pull', 'forge', 7)"
        )
        monkeypatch.setattr(migrations, "known", lambda: steps)
        migrate(connection, APP)
        [(terms, holders)] = connection.execute(
            "select terms, holders from toolfold.sources"
        ).fetchall()

    assert dict(zip(terms, holders, strict=True)) == {"pull": 2, "issu": 3}
