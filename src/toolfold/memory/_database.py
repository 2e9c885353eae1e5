"""A memory in PostgreSQL, which several processes share: the same records, for each tenant.

Whoever writes holds the tenant's row in `memories` to the end of the transaction, so that what is
read by its sequence number is never missed. How search ranked tools is kept in this process as
well, since it is asked for where nobody may wait for a database.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolfold._json_values import compact, parse
from toolfold.memory._kept import KeptRequest, Ranked, StoreError, ToolKey
from toolfold.memory._store import MemoryFile
from toolfold.store.postgres.database import Database

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["PostgresMemory"]

_AT_MOST = 1_000_000_000


class PostgresMemory:
    """What one tenant's searches led to.

    Args:
        database: Where it is.
        tenant: Whose it is; by default the database's tenant's.
    """

    def __init__(self, database: Database, tenant: str | None = None) -> None:
        self.tenant = database.tenant if tenant is None else tenant
        self.problem = ""
        self.path: Path | None = None
        self.is_lasting = True
        self.place = "PostgreSQL"
        self._database = database
        self._made_by = 0
        self._made: Callable[[str], bytes] = lambda text: b""
        self._names: dict[int, ToolKey] = {}
        self._ranked: dict[int, str] = {}

    def __str__(self) -> str:
        return self.place

    def of(self, tenant: str) -> PostgresMemory:
        """Return what another tenant's searches led to."""
        return PostgresMemory(self._database, tenant)

    def close(self) -> None:
        """Let go of what this process keeps of it; the database is somebody else's to close."""
        self._names, self._ranked = {}, {}

    # ---- reading

    def changes(self) -> tuple[int, int, int]:
        """Return what deletions raise, what new and changed requests raise, and what pairs do."""
        rows = self._rows(
            "select generation, seq, pairs from toolfold.memories where tenant = %(tenant)s"
        )
        return rows[0] if rows else (0, 0, 0)

    def writes(self) -> tuple[int, int, int]:
        """Return what changes when anybody has written."""
        return self.changes()

    def requests(self, *, after: int = 0) -> Iterator[KeptRequest]:
        """Yield the requests that were kept or changed after a sequence number, in that order."""
        with self._asking() as connection:
            names = self._read_tools(connection)
            rows = connection.execute(
                "select id, seq, principal, text, at, made_by, vector, ranked::text"
                " from toolfold.memory_requests where tenant = %s and seq > %s order by seq",
                (self.tenant, after),
            ).fetchall()
            used: dict[int, list[tuple[ToolKey, int, int]]] = {}
            for request, tool, worked, failed in connection.execute(
                "select u.request, u.tool, u.worked, u.failed from toolfold.memory_uses u"
                " join toolfold.memory_requests r on r.tenant = u.tenant and r.id = u.request"
                " where u.tenant = %s and r.seq > %s order by u.at desc, u.tool",
                (self.tenant, after),
            ).fetchall():
                used.setdefault(request, []).append((names[tool], worked, failed))
        ranked = {row[0]: str(row[7]) for row in rows}
        self._names = names
        self._ranked = {**self._ranked, **ranked} if after else ranked
        for id_, seq, principal, text, at, made_by, vector, places in rows:
            packed = bytes(vector) if made_by == self._made_by else self._made(text)
            uses = tuple(used.get(id_, ()))
            yield KeptRequest(
                id_, seq, principal, text, at, packed, _read_ranked(places, names), uses
            )

    def tools(self) -> Mapping[int, ToolKey]:
        """Return the tools that anything is kept of."""
        with self._asking() as connection:
            return self._read_tools(connection)

    def text(self, request: int) -> str | None:
        """Return the text of a request."""
        rows = self._rows(
            "select text from toolfold.memory_requests where tenant = %(tenant)s and id = %(id)s",
            id=request,
        )
        return str(rows[0][0]) if rows else None

    def ranked(self, requests: Sequence[int]) -> dict[int, Ranked]:
        """Return how search ranked tools for requests, as this process read it last."""
        names = self._names
        return {id_: _read_ranked(self._ranked.get(id_, "[]"), names) for id_ in requests}

    def pairs(self) -> Sequence[tuple[str, ToolKey, ToolKey, int]]:
        """Return which tools were used in one task, for whom, and how often."""
        with self._asking() as connection:
            names = self._read_tools(connection)
            rows = connection.execute(
                "select principal, tool, other, times from toolfold.memory_pairs"
                " where tenant = %s order by principal, tool, other",
                (self.tenant,),
            ).fetchall()
        return [
            (principal, names[tool], names[other], times) for principal, tool, other, times in rows
        ]

    def _read_tools(self, connection: Connection[Any]) -> dict[int, ToolKey]:
        rows = connection.execute(
            "select id, name, digest from toolfold.memory_tools where tenant = %s", (self.tenant,)
        ).fetchall()
        return {id_: (name, digest) for id_, name, digest in rows}

    def _rows(self, statement: Any, **values: Any) -> list[Any]:
        with self._asking() as connection:
            return connection.execute(statement, {"tenant": self.tenant, **values}).fetchall()

    # ---- writing

    def put(
        self,
        principal: str,
        text: str,
        vector: bytes,
        ranked: Ranked | None,
        uses: Iterable[tuple[ToolKey, int, int]],
        at: float,
    ) -> int:
        """Keep that a request led to tools; what was kept of it is added to.

        Args:
            principal: Whose request it was.
            text: The request, redacted.
            vector: Its vector.
            ranked: How search ranked tools for it; None keeps what is known of that.
            uses: Tools, and how often each worked and did not.
            at: When.
        """
        with self._changing() as connection:
            return self._put(connection, principal, text, vector, ranked, list(uses), at)

    def _put(
        self,
        connection: Connection[Any],
        principal: str,
        text: str,
        vector: bytes,
        ranked: Ranked | None,
        uses: Sequence[tuple[ToolKey, int, int]],
        at: float,
    ) -> int:
        seq = self._next(connection, "seq")
        tools = self._tools(connection, [*(key for key, *_ in uses), *(k for k, _ in ranked or ())])
        places = None
        if ranked is not None:
            places = compact([[tools[key], round(value, 3)] for key, value in ranked])
        row = connection.execute(
            "insert into toolfold.memory_requests as kept"
            " (tenant, key, seq, principal, text, at, made_by, vector, ranked)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s, %s::jsonb)"
            " on conflict (tenant, key) do update set seq = excluded.seq,"
            " at = greatest(kept.at, excluded.at), made_by = excluded.made_by,"
            " vector = excluded.vector,"
            " ranked = case when %s then excluded.ranked else kept.ranked end returning id",
            (self.tenant, _key(principal, text), seq, principal, text, at, self._made_by, vector,
             places or "[]", places is not None),
        ).fetchone()  # fmt: skip
        assert row is not None
        for key, worked, failed in uses:
            connection.execute(
                "insert into toolfold.memory_uses as kept values (%s, %s, %s, %s, %s, %s)"
                " on conflict (tenant, request, tool) do update"
                " set worked = least(kept.worked::bigint + excluded.worked, %s),"
                " failed = least(kept.failed::bigint + excluded.failed, %s),"
                " at = greatest(kept.at, excluded.at)",
                (self.tenant, row[0], tools[key], worked, failed, at, _AT_MOST, _AT_MOST),
            )
        return int(row[0])

    def pair(self, principal: str, one: ToolKey, other: ToolKey, times: int, at: float) -> None:
        """Keep that two tools were used in one task."""
        with self._changing() as connection:
            self._next(connection, "pairs")
            tools = self._tools(connection, (one, other))
            for tool, beside in ((one, other), (other, one)):
                self._pair(connection, principal, tools[tool], tools[beside], times, at)

    def _pair(
        self,
        connection: Connection[Any],
        principal: str,
        tool: int,
        other: int,
        times: int,
        at: float,
    ) -> None:
        connection.execute(
            "insert into toolfold.memory_pairs as kept values (%s, %s, %s, %s, %s, %s)"
            " on conflict (tenant, principal, tool, other) do update"
            " set times = least(kept.times::bigint + excluded.times, %s),"
            " at = greatest(kept.at, excluded.at)",
            (self.tenant, principal, tool, other, times, at, _AT_MOST),
        )

    def seen(self, tools: Iterable[ToolKey], at: float) -> None:
        """Keep that tools are still there, so that they are not taken for gone."""
        keys = list(tools)
        with self._changing() as connection:
            connection.execute(
                "update toolfold.memory_tools kept set seen = %s"
                " from unnest(%s::text[], %s::text[]) as each (name, digest)"
                " where kept.tenant = %s and kept.name = each.name"
                " and kept.digest = each.digest and kept.seen < %s",
                (at, [name for name, _ in keys], [digest for _, digest in keys], self.tenant, at),
            )

    def renew_vectors(self, version: str, made: Callable[[str], bytes]) -> None:
        """Have vectors that another table made be made anew as they are read.

        Processes of several versions may share the database: none changes what another made.
        """
        self._made_by, self._made = zlib.crc32(version.encode()), made

    def take_over(self, file: MemoryFile) -> int:
        """Keep what a file holds, once; return how many requests that were.

        The file stays as it is; it is known again by a number that it is given.
        """
        origin = file.origin()
        with self._changing() as connection:
            is_new = connection.execute(
                "insert into toolfold.memory_files (tenant, origin) values (%s, %s)"
                " on conflict do nothing",
                (self.tenant, origin),
            ).rowcount
            if not is_new:
                return 0
            count = 0
            for kept in file.requests():
                self._put(
                    connection, kept.principal, kept.text, kept.vector, kept.ranked or None,
                    kept.uses, kept.at,
                )  # fmt: skip
                count += 1
            self._next(connection, "pairs")
            pairs = file.pairs()
            tools = self._tools(connection, {key for _, *keys, _ in pairs for key in keys})
            for principal, tool, other, times in pairs:
                self._pair(connection, principal, tools[tool], tools[other], times, time.time())
        return count

    # ---- forgetting

    def forget(
        self, *, tool: str | None = None, principal: str | None = None, before: float | None = None
    ) -> int:
        """Delete uses and pairs that all conditions hold for; return how many uses went.

        Args:
            tool: The name of a tool.
            principal: Whose searches.
            before: What was last used before this moment.
        """
        values = {"tenant": self.tenant, "tool": tool, "principal": principal, "before": before}
        with self._changing() as connection:
            uses = connection.execute(
                "delete from toolfold.memory_uses u"
                " using toolfold.memory_requests r, toolfold.memory_tools t"
                " where u.tenant = %(tenant)s and r.tenant = u.tenant and r.id = u.request"
                " and t.tenant = u.tenant and t.id = u.tool"
                " and (%(tool)s::text is null or t.name = %(tool)s)"
                " and (%(principal)s::text is null or r.principal = %(principal)s)"
                " and (%(before)s::double precision is null or u.at < %(before)s)",
                values,
            ).rowcount
            pairs = connection.execute(
                "delete from toolfold.memory_pairs where tenant = %(tenant)s"
                " and (%(tool)s::text is null or exists (select from toolfold.memory_tools t"
                " where t.tenant = %(tenant)s and t.id in (tool, other) and t.name = %(tool)s))"
                " and (%(principal)s::text is null or principal = %(principal)s)"
                " and (%(before)s::double precision is null or at < %(before)s)",
                values,
            ).rowcount
            if uses or pairs:
                self._tidy(connection)
        return uses

    def forget_tools(
        self, *, name: str | None = None, unseen: float | None = None, ids: Sequence[int] = ()
    ) -> int:
        """Delete all that is kept of tools of a name, not seen since a moment, or of some ids."""
        with self._changing() as connection:
            gone = connection.execute(
                "delete from toolfold.memory_tools where tenant = %s"
                " and (name = %s or seen < %s or id = any(%s))",
                (self.tenant, name, unseen, list(ids)),
            ).rowcount
            if gone:
                self._tidy(connection)
        return gone

    def forget_oldest(self, bound: int) -> int:
        """Delete the oldest requests beyond a bound, and a few more, so that it is seldom done."""
        with self._changing() as connection:
            row = connection.execute(
                "select count(*) from toolfold.memory_requests where tenant = %s", (self.tenant,)
            ).fetchone()
            count = row[0] if row else 0
            if count <= bound:
                return 0
            gone = connection.execute(
                "delete from toolfold.memory_uses where tenant = %s and request in ("
                " select id from toolfold.memory_requests where tenant = %s"
                " order by at, id limit %s)",
                (self.tenant, self.tenant, count - bound + bound // 20),
            ).rowcount
            self._tidy(connection)
        return gone

    def clear(self) -> int:
        """Delete everything; return how many uses went."""
        with self._changing() as connection:
            gone = connection.execute(
                "delete from toolfold.memory_uses where tenant = %s", (self.tenant,)
            ).rowcount
            for statement in (
                "delete from toolfold.memory_pairs where tenant = %s",
                "delete from toolfold.memory_requests where tenant = %s",
                "delete from toolfold.memory_tools where tenant = %s",
            ):
                connection.execute(statement, (self.tenant,))
            self._next(connection, "generation")
            self._next(connection, "pairs")
        return gone

    def scrub(self) -> None:
        """Do nothing: what PostgreSQL deleted it overwrites in its own time."""

    def _tidy(self, connection: Connection[Any]) -> None:
        """Delete requests that lead nowhere any more, and tools of which nothing is kept."""
        values = {"tenant": self.tenant}
        connection.execute(
            "delete from toolfold.memory_requests r where tenant = %(tenant)s and not exists ("
            " select from toolfold.memory_uses u where u.tenant = r.tenant and u.request = r.id)",
            values,
        )
        connection.execute(
            "delete from toolfold.memory_tools t where tenant = %(tenant)s"
            " and not exists (select from toolfold.memory_uses u"
            " where u.tenant = t.tenant and u.tool = t.id)"
            " and not exists (select from toolfold.memory_pairs p"
            " where p.tenant = t.tenant and p.tool = t.id)"
            " and id not in (select (each ->> 0)::bigint from toolfold.memory_requests r,"
            " jsonb_array_elements(r.ranked) each where r.tenant = %(tenant)s)",
            values,
        )
        self._next(connection, "generation")
        self._next(connection, "pairs")

    # ---- one transaction

    @contextmanager
    def _asking(self) -> Generator[Connection[Any]]:
        with (
            _told("read"),
            self._database.transaction(reads_only=True, tenant=self.tenant) as connection,
        ):
            yield connection

    @contextmanager
    def _changing(self) -> Generator[Connection[Any]]:
        """One transaction, while no other changes this tenant's memory."""
        with _told("written"), self._database.transaction(tenant=self.tenant) as connection:
            connection.execute(
                "insert into toolfold.memories (tenant) values (%s) on conflict do nothing",
                (self.tenant,),
            )
            connection.execute(
                "select from toolfold.memories where tenant = %s for update", (self.tenant,)
            )
            yield connection

    def _next(self, connection: Connection[Any], what: str) -> int:
        from psycopg import sql

        column = sql.Identifier(what)
        statement = sql.SQL(
            "update toolfold.memories set {0} = {0} + 1 where tenant = %s returning {0}"
        )
        row = connection.execute(statement.format(column), (self.tenant,)).fetchone()
        assert row is not None
        return int(row[0])

    def _tools(self, connection: Connection[Any], keys: Iterable[ToolKey]) -> Mapping[ToolKey, int]:
        """Return the ids of tools, which are there from then on."""
        wanted = list(dict.fromkeys(keys))
        rows = connection.execute(
            "insert into toolfold.memory_tools as kept (tenant, name, digest, seen)"
            " select %s, each.name, each.digest, %s"
            " from unnest(%s::text[], %s::text[]) as each (name, digest)"
            " on conflict (tenant, name, digest) do update"
            " set seen = greatest(kept.seen, excluded.seen) returning name, digest, id",
            (self.tenant, time.time(), [name for name, _ in wanted], [d for _, d in wanted]),
        ).fetchall()
        return {(name, digest): id_ for name, digest, id_ in rows}


@contextmanager
def _told(what: str) -> Generator[None]:
    """Have what the database does not take be an error of the memory."""
    from psycopg import Error

    try:
        yield
    except (Error, UnicodeError) as error:
        text = str(error).partition("\n")[0]
        raise StoreError(f"the memory cannot be {what}: {text}") from None


def _key(principal: str, text: str) -> bytes:
    return hashlib.sha256(f"{principal}\0{text}".encode("utf-8", "surrogatepass")).digest()


def _read_ranked(text: str, names: Mapping[int, ToolKey]) -> Ranked:
    try:
        return tuple((names[tool], float(value)) for tool, value in parse(text) if tool in names)
    except (ValueError, TypeError):
        return ()
