"""Filling the shared catalog: what is new or changed is written, by digest; the rest stays.

What a search has to know of tools takes more time than to write it. It is made batch by batch ahead
of the writing, on a thread or in processes of its own; what a batch changes is written in one
transaction, rows and sums, all or none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold.search._columns import columns_of
from toolfold.search.lexical import mean_lengths
from toolfold.search.partial import FIELD_COUNT, ToolEntry, dimensions, entries, impacts, version
from toolfold.shared._rows import (
    COLUMNS,
    COPY_END,
    COPY_START,
    copied,
    definition_of,
    entry_of,
    tool_of,
)
from toolfold.shared._sums import Sums, apply
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from psycopg import Connection

__all__ = [
    "BATCH",
    "CatalogChanges",
    "PreparedTools",
    "PushBatch",
    "changes",
    "known_lengths",
    "new_or_changed",
    "prepared_ahead",
    "remove",
    "write",
]

BATCH = 4_000
"""How many tools are written in one transaction."""

_AHEAD = 2
"""How many batches a worker is ahead of the writing."""


class CatalogChanges(NamedTuple):
    """What a push would do."""

    added: list[Tool]
    changed: list[Tool]
    """Those that say something else, or of which it is no longer the same whether they wait."""
    same: int
    gone: list[str]
    """Tools of the same sources that are not in the list any more."""


class PushBatch(NamedTuple):
    """Tools that are new or changed, among those that were looked at until then."""

    tools: Sequence[Tool]
    waiting: frozenset[str]
    """The names of those that nobody finds until a person has looked at them; what is known of all
    tools knows nothing of these."""
    lengths: NDArray[np.float64] | None
    """The mean length of each field over all tools; None where there are few yet."""
    seen: int
    """How many tools of the push were looked at until then."""


class PreparedTools(NamedTuple):
    """Tools as they are written."""

    names: list[str]
    rows: bytes
    """Their rows, as COPY takes them."""
    sums: Sums
    """What they add to what is known of all tools."""
    seen: int
    """How many tools of the push were looked at until then."""


def changes(
    connection: Connection[Any],
    tenant: str,
    tools: Sequence[Tool],
    sources: Collection[str] = (),
    waiting: Collection[str] = (),
) -> CatalogChanges:
    """Return how tools differ from what is there of their sources.

    Args:
        connection: To the database.
        tenant: Whose catalog it is.
        tools: The tools.
        sources: Further sources, which may have none of them.
        waiting: The names of those that wait for a person.
    """
    names = [tool.name for tool in tools]
    own = sorted({*sources, *(tool.source or "" for tool in tools)})
    rows = connection.execute(
        "select name, digest, made_by, trusted, source = any(%s) from toolfold.tools"
        " where tenant = %s and (source = any(%s) or name = any(%s))",
        (own, tenant, own, names),
    ).fetchall()
    there = {row[0]: row[1:4] for row in rows}
    now, held = version(), frozenset(waiting)
    added = [tool for tool in tools if tool.name not in there]
    changed = [
        tool
        for tool in tools
        if there.get(tool.name, ()) not in ((), (tool.digest, now, tool.name not in held))
    ]
    given = set(names)
    gone = sorted(row[0] for row in rows if row[4] and row[0] not in given)
    return CatalogChanges(added, changed, len(tools) - len(added) - len(changed), gone)


def new_or_changed(
    connection: Connection[Any],
    tenant: str,
    tools: Sequence[Tool],
    waiting: Collection[str] = (),
) -> list[Tool]:
    """Return those of some tools that are not there as they are; of one name the last.

    Args:
        connection: To the database.
        tenant: Whose catalog it is.
        tools: The tools.
        waiting: The names of those that wait for a person.
    """
    by_name = {tool.name: tool for tool in tools}
    rows = connection.execute(
        "select name, digest, made_by, trusted from toolfold.tools"
        " where tenant = %s and name = any(%s)",
        (tenant, list(by_name)),
    )
    there = {row[0]: row[1:] for row in rows}
    now = version()
    return [
        tool
        for tool in by_name.values()
        if there.get(tool.name) != (tool.digest, now, tool.name not in waiting)
    ]


@contextmanager
def prepared_ahead(
    tenant: str, batches: Iterable[PushBatch], workers: int
) -> Generator[Iterator[PreparedTools]]:
    """Prepare batches ahead of the one that is looked at, in their order.

    Args:
        tenant: Whose tools they are.
        batches: The batches, taken from when there is room.
        workers: How many processes prepare; with one it is a thread of this process.
    """
    executor: Executor
    if workers > 1:
        executor = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    else:
        executor = ThreadPoolExecutor(1)

    def found() -> Iterator[PreparedTools]:
        waiting: deque[Future[PreparedTools]] = deque()
        for batch in batches:
            if workers > 1:
                # A tool may have a function with it, which cannot leave its process.
                texts = [definition_of(tool) for tool in batch.tools]
                waiting.append(executor.submit(_prepared_texts, tenant, texts, batch[1:]))
            else:
                waiting.append(executor.submit(_prepared, tenant, batch))
            if len(waiting) >= _AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    try:
        yield found()
    finally:
        executor.shutdown(cancel_futures=True)


def _prepared_texts(tenant: str, texts: Sequence[str], about: tuple[Any, ...]) -> PreparedTools:
    return _prepared(tenant, PushBatch([tool_of(text) for text in texts], *about))


def _prepared(tenant: str, batch: PushBatch) -> PreparedTools:
    own = entries(batch.tools)
    documents = [entry.document for entry in own]
    lengths = mean_lengths(columns_of(documents)) if batch.lengths is None else batch.lengths
    sums = Sums()
    sums.add([entry for entry in own if entry.name not in batch.waiting])
    made_by = version()
    rows = zip(batch.tools, own, impacts(documents, lengths), strict=True)
    content = b"".join(
        copied(tenant, tool, entry, worth, made_by, waits=tool.name in batch.waiting)
        for tool, entry, worth in rows
    )
    return PreparedTools([entry.name for entry in own], content, sums, batch.seen)


def write(connection: Connection[Any], tenant: str, tools: PreparedTools) -> int:
    """Write tools and what they change for all, and return how many of them are new."""
    _hold(connection, tenant)
    there, counted = _held(connection, tenant, tools.names)
    tools.sums.add(counted, -1)
    connection.execute(
        "create temporary table if not exists pushed (like toolfold.tools including defaults)"
        " on commit delete rows"
    )
    connection.execute("alter table pushed alter id drop not null")
    own = ", ".join(COLUMNS)
    with connection.cursor().copy(f"copy pushed ({own}) from stdin with (format binary)") as copy:
        copy.write(COPY_START + tools.rows + COPY_END)
    updates = ", ".join(f"{column} = excluded.{column}" for column in (*COLUMNS[2:], "changed"))
    upsert = (
        f"insert into toolfold.tools ({own}) select {own} from pushed"
        f" on conflict (tenant, name) do update set {updates}"
    )
    connection.execute(upsert)
    connection.execute("truncate pushed")
    apply(connection, tenant, tools.sums)
    return len(tools.names) - there


def remove(connection: Connection[Any], tenant: str, names: Sequence[str]) -> int:
    """Take tools out and return how many there were."""
    _hold(connection, tenant)
    sums = Sums()
    there, counted = _held(connection, tenant, names)
    sums.add(counted, -1)
    connection.execute(
        "delete from toolfold.tools where tenant = %s and name = any(%s)", (tenant, list(names))
    )
    apply(connection, tenant, sums)
    return there


def known_lengths(connection: Connection[Any], tenant: str) -> NDArray[np.float64] | None:
    """Return the mean lengths of fields over a tenant's tools; None where they are few."""
    import numpy as np

    row = connection.execute(
        "select size, lengths, filled from toolfold.catalogs where tenant = %s", (tenant,)
    ).fetchone()
    if row is None or row[0] < BATCH:
        return None
    return np.maximum(np.array(row[1]) / np.maximum(row[2], 1), 1e-9)


def _hold(connection: Connection[Any], tenant: str) -> None:
    """Hold the catalog's row, so that one changes it after the other."""
    import numpy as np

    held = "select true from toolfold.catalogs where tenant = %s for update"
    if connection.execute(held, (tenant,)).fetchone():
        return
    size = dimensions()
    connection.execute(
        "insert into toolfold.catalogs (tenant, made_by, lengths, filled, vector_sum, moment)"
        " values (%s, %s, %s, %s, %s, %s) on conflict do nothing",
        (
            tenant, version(), [0] * FIELD_COUNT, [0] * FIELD_COUNT,
            np.zeros(size).tobytes(), np.zeros(size * size).tobytes(),
        ),
    )  # fmt: skip
    connection.execute(held, (tenant,))


def _held(
    connection: Connection[Any], tenant: str, names: Sequence[str]
) -> tuple[int, list[ToolEntry]]:
    """Return how many of some tools there are, and what is counted of them.

    Of those that wait for a person nothing is.
    """
    found = connection.execute(
        "select trusted, name, source, digest, document, term_count, vector from toolfold.tools"
        " where tenant = %s and name = any(%s)",
        (tenant, list(names)),
    ).fetchall()
    return len(found), [entry_of(*row[1:]) for row in found if row[0]]
