"""Filling the shared catalog: what is new or changed is written, by digest; the rest stays."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold.search._columns import columns_of
from toolfold.search.lexical import mean_lengths
from toolfold.search.partial import FIELD_COUNT, ToolEntry, dimensions, entries, impacts, version
from toolfold.shared._rows import COLUMNS, entry_of, row_of
from toolfold.shared._sums import Sums, apply
from toolfold.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from psycopg import Connection

__all__ = ["CatalogChanges", "changes", "push_batch", "remove"]


class CatalogChanges(NamedTuple):
    """What a push would do."""

    added: list[Tool]
    changed: list[Tool]
    """Those that say something else, or of which it is no longer the same whether they wait."""
    same: int
    gone: list[str]
    """Tools of the same sources that are not in the list any more."""


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


def push_batch(
    connection: Connection[Any],
    tenant: str,
    tools: Sequence[Tool],
    waiting: Collection[str] = (),
) -> None:
    """Write some tools, all or none.

    Args:
        connection: To the database.
        tenant: Whose catalog it is.
        tools: The tools.
        waiting: The names of those that nobody finds until a person has looked at them; what
            is known of all tools knows nothing of these.
    """
    own = entries(tools)
    lengths = _hold(connection, tenant, own)
    sums = Sums()
    sums.add(_held(connection, tenant, [tool.name for tool in tools]), -1)
    sums.add(entry for entry in own if entry.name not in waiting)
    worth = impacts([entry.document for entry in own], lengths)
    made_by = version()
    rows = zip(tools, own, worth, strict=True)
    connection.execute(
        "create temporary table if not exists pushed (like toolfold.tools) on commit delete rows"
    )
    connection.execute("alter table pushed alter id drop not null")
    copied = ", ".join(COLUMNS)
    into = f"copy pushed ({copied}, trusted, changed) from stdin with (format binary)"
    with connection.cursor().copy(into) as copy:
        copy.set_types(
            ["text"] * 6 + ["bool"] + ["text"] * 6 + ["int4", "bytea", "halfvec", "sparsevec"]
            + ["int4[]", "bool", "bool", "timestamptz"]
        )  # fmt: skip
        for tool, entry, values in rows:
            row = row_of(tenant, tool, entry, values, made_by)
            copy.write_row([*row, tool.name not in waiting, datetime.now(UTC)])
    written = (*COLUMNS[2:], "trusted", "changed")
    updates = ", ".join(f"{column} = excluded.{column}" for column in written)
    upsert = (
        f"insert into toolfold.tools ({copied}, trusted, changed)"
        f" select {copied}, trusted, changed from pushed"
        f" on conflict (tenant, name) do update set {updates}"
    )
    connection.execute(upsert)
    connection.execute("truncate pushed")
    apply(connection, tenant, sums)


def remove(connection: Connection[Any], tenant: str, names: Sequence[str]) -> int:
    """Take tools out and return how many there were."""
    _hold(connection, tenant, [])
    sums = Sums()
    sums.add(_held(connection, tenant, names), -1)
    gone = connection.execute(
        "delete from toolfold.tools where tenant = %s and name = any(%s)", (tenant, list(names))
    ).rowcount
    apply(connection, tenant, sums)
    return gone


def _hold(
    connection: Connection[Any], tenant: str, own: Sequence[ToolEntry]
) -> NDArray[np.float64]:
    """Hold the catalog's row and return the mean lengths of fields."""
    import numpy as np

    size = dimensions()
    connection.execute(
        "insert into toolfold.catalogs (tenant, made_by, lengths, filled, vector_sum, moment)"
        " values (%s, %s, %s, %s, %s, %s) on conflict do nothing",
        (
            tenant, version(), [0] * FIELD_COUNT, [0] * FIELD_COUNT,
            np.zeros(size).tobytes(), np.zeros(size * size).tobytes(),
        ),
    )  # fmt: skip
    row = connection.execute(
        "select size, lengths, filled from toolfold.catalogs where tenant = %s for update",
        (tenant,),
    ).fetchone()
    assert row is not None
    if row[0] >= len(own) or not own:
        return np.maximum(np.array(row[1]) / np.maximum(row[2], 1), 1e-9)
    return mean_lengths(columns_of([entry.document for entry in own]))


def _held(connection: Connection[Any], tenant: str, names: Sequence[str]) -> list[ToolEntry]:
    """Return what is counted of some tools: of those that wait for a person, nothing is."""
    found = connection.execute(
        "select name, source, digest, document, term_count, vector from toolfold.tools"
        " where tenant = %s and name = any(%s) and trusted",
        (tenant, list(names)),
    ).fetchall()
    return [entry_of(*row) for row in found]
