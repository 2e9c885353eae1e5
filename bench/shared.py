"""The shared catalog beside the embedded index and plain `tsvector`, over one PostgreSQL.

`python -m bench shared` takes 226, 500 and 4,076 tools, in an environment that has PostgreSQL
(`make cluster` makes one); `BENCH_SHARED=46936` takes the largest catalog as well.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from bench import data
from toolfold import Catalog, Tool
from toolfold.evaluation.measure import percentile
from toolfold.search.hybrid import Hybrid

__all__ = ["shared"]

_CATALOGS = ("deploy-226", "seal-500", "seal-4076")


def shared() -> list[dict[str, Any]]:
    """Milliseconds of a search in each of the three, and how often the first five are the same."""
    try:
        from cluster.postgres import APP, OWNER, Postgres, why_not
    except ModuleNotFoundError:
        print("note: skipped, `cluster` is not in this tree", file=sys.stderr)
        return []
    if reason := why_not():
        print(f"note: skipped, {reason}: run `make cluster` once", file=sys.stderr)
        return []
    import psycopg

    from toolfold.shared import SharedCatalog
    from toolfold.store.postgres.migrations import migrate

    rows: list[dict[str, Any]] = []
    names = [*_CATALOGS, *(("scale-46936",) if os.environ.get("BENCH_SHARED") else ())]
    with Postgres("shared_buffers=512MB", "maintenance_work_mem=512MB") as server:
        with psycopg.connect(server.address(OWNER), autocommit=True) as owner:
            owner.execute("create role app login")
            migrate(owner, APP)
            owner.execute("grant create on schema public to app")
        for name in names:
            tools = list(Catalog.read(list(data.catalog(name).tools)).tools)
            with SharedCatalog(server.address(), tenant=name) as catalog:
                began = time.perf_counter()
                catalog.push(tools)
                pushed = time.perf_counter() - began
                with psycopg.connect(server.address(OWNER), autocommit=True) as owner:
                    owner.execute("vacuum analyze toolfold.tools")
                rows += _compared(name, tools, catalog, server.address(), pushed)
    return rows


def _compared(
    name: str, tools: Sequence[Tool], catalog: Any, address: str, pushed: float
) -> list[dict[str, Any]]:
    queries = data.queries("short")
    searcher = Hybrid().searcher(tools)
    embedded, own = _timed(
        lambda q: [tools[m.position].name for m in searcher.search(q, 5)], queries
    )
    found, shared_ms = _timed(lambda q: [h.tool.name for h in catalog.search(q, 5)], queries)
    plain, plain_ms = _timed(_by_tsvector(tools, address, name), queries)
    about = {"catalog": name, "tools": len(tools)}

    def row(system: str, hits: list[list[str]], times: list[float]) -> dict[str, Any]:
        pairs = list(zip(hits, embedded, strict=True))
        return {
            **about,
            "system": system,
            "p50 ms": round(median(times), 2),
            "p95 ms": round(percentile(times, 95), 2),
            "same first": round(sum(a[:1] == b[:1] for a, b in pairs) / len(pairs), 3),
            "same five": round(sum(len(set(a) & set(b)) for a, b in pairs) / 5 / len(pairs), 3),
        }

    last = row("shared", found, shared_ms) | {"pushed a second": round(len(tools) / pushed)}
    last["peak MB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return [row("embedded", embedded, own), last, row("tsvector", plain, plain_ms)]


def _timed(
    search: Callable[[str], list[str]], queries: Sequence[str]
) -> tuple[list[list[str]], list[float]]:
    for query in queries[:5]:
        search(query)
    hits: list[list[str]] = []
    times: list[float] = []
    for query in queries:
        began = time.perf_counter()
        hits.append(search(query))
        times.append((time.perf_counter() - began) * 1e3)
    return hits, times


def _by_tsvector(tools: Sequence[Tool], address: str, name: str) -> Callable[[str], list[str]]:
    """Return PostgreSQL's own text search over names and descriptions, any word, by rank."""
    import psycopg

    connection = psycopg.connect(address, autocommit=True)
    table = "plain_" + name.replace("-", "_")
    connection.execute(f"create table {table} (name text, words tsvector)")
    with connection.cursor() as cursor:
        cursor.executemany(
            f"insert into {table} values (%s, to_tsvector('english', %s))",
            [
                (t.name, f"{t.name.replace('_', ' ')} {t.description}".replace("\0", ""))
                for t in tools
            ],
        )
    connection.execute(f"create index on {table} using gin (words)")
    statement = (
        f"select name from {table}, to_tsquery('english', %s) q"
        " where words @@ q order by ts_rank_cd(words, q, 1) desc, name limit 5"
    )

    def search(query: str) -> list[str]:
        words = " | ".join(w for w in "".join(c if c.isalnum() else " " for c in query).split())
        return [row[0] for row in connection.execute(statement, (words,))]

    return search
