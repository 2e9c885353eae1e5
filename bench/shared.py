"""The shared catalog beside the embedded index and others, over one PostgreSQL.

    python -m bench shared                                         # 226, 500 and 4,076 tools
    BENCH_SHARED=4076,46936,100000,1000000 python -m bench shared  # these sizes
    BENCH_MILVUS=PYTHON python -m bench shared                     # and Milvus Lite, which that has

It wants an environment that has PostgreSQL (`make cluster` makes one). Beyond 4,076 tools the
largest corpus is taken and copied, each copy with other sources, words and numbers. A million tools
take 10 GB of memory for the embedded index alone, and eight minutes on 16 cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from multiprocessing import get_context
from statistics import median
from typing import Any, NamedTuple

from bench import data
from bench.copies import Copies
from bench.embedded import Embedded, embedded, read_tools
from bench.milvus import by_milvus
from bench.shared_ways import ways
from bench.timed import timed
from toolfold import Catalog, Tool
from toolfold.evaluation.measure import percentile
from toolfold.search._columns import columns_of
from toolfold.search._document import document
from toolfold.search.hybrid import Hybrid
from toolfold.search.lexical import Words

__all__ = ["shared"]

_CATALOGS = {226: "deploy-226", 500: "seal-500", 4_076: "seal-4076"}
_SIZES = ",".join(map(str, _CATALOGS))
_LABELLED = 100
"""How many of the requests of the large corpus are searched for."""

_CHUNK = 2_000
_MORE = 5_000
"""So many tools are added to a large catalog that has its indexes."""

Row = dict[str, Any]


class _Requests(NamedTuple):
    """What is asked: first requests of any kind, then some whose tools are known."""

    queries: list[str]
    timed: int
    """So many of the first count for times and for what is the same."""
    gold: list[frozenset[str]]
    """The tools that serve each of the others."""


def shared() -> list[Row]:
    """Searches in each: milliseconds, how often the first five are the same, what they take."""
    try:
        from cluster.postgres import OWNER, Postgres, why_not
    except ModuleNotFoundError:
        print("note: skipped, `cluster` is not in this tree", file=sys.stderr)
        return []
    if reason := why_not():
        print(f"note: skipped, {reason}: run `make cluster` once", file=sys.stderr)
        return []
    sizes = [int(size) for size in (os.environ.get("BENCH_SHARED") or _SIZES).split(",")]
    # A server as it is set up for such a catalog: what is searched fits into memory.
    memory = "8GB" if max(sizes) > 200_000 else "1GB"
    settings = (
        f"shared_buffers={memory}", f"maintenance_work_mem={memory}", "max_wal_size=16GB",
        f"max_parallel_maintenance_workers={_workers()}", f"max_worker_processes={_workers() + 8}",
        f"max_parallel_workers={_workers()}", "dynamic_shared_memory_type=mmap",
    )  # fmt: skip
    rows: list[Row] = []
    with Postgres(*settings) as server:
        _owner(server.address(OWNER)).execute("create role app login")
        for size in sizes:
            if size in _CATALOGS:
                name = _CATALOGS[size]
                given = list(Catalog.read(list(data.catalog(name).tools)).tools)
                rows += _measured(
                    server, name, given, len(given), lambda given=given: _index(given)
                )
            else:
                rows += _measured(
                    server,
                    f"copies-{size}",
                    _fed(size),
                    size,
                    lambda size=size: embedded(size, os.cpu_count() or 1),
                )
    return rows


def _index(tools: Sequence[Tool]) -> Embedded:
    words = Words(columns_of([document(tool) for tool in tools]))
    return Embedded(Hybrid().searcher(tools), [tool.name for tool in tools], words)


def _workers() -> int:
    return min(os.cpu_count() or 1, 12)


def _owner(address: str) -> Any:
    import psycopg

    return psycopg.connect(address, autocommit=True)


def _fed(size: int, start: int = 0) -> Iterator[Tool]:
    """Yield tools that a process of its own makes, so that making them takes no time from others.

    Args:
        size: How many there are.
        start: How many are left out at the beginning.
    """
    context = get_context("spawn")
    queue: Any = context.Queue(8)
    feeder = context.Process(target=_feed, args=(queue, size, start), daemon=True)
    feeder.start()
    while some := queue.get():
        yield from some
    feeder.join()


def _feed(queue: Any, size: int, start: int) -> None:
    rows = islice(Copies().tools(size), start, size)
    while some := list(islice(rows, _CHUNK)):
        queue.put(read_tools(some))
    queue.put(None)


def _measured(
    server: Any, name: str, tools: Iterable[Tool], size: int, embed: Callable[[], Embedded]
) -> list[Row]:
    """Fill a database of its own with tools, and search there and elsewhere."""
    from cluster.postgres import APP, OWNER

    from toolfold.shared import SharedCatalog
    from toolfold.store.postgres.migrations import migrate

    database = name.replace("-", "_")
    _owner(server.address(OWNER)).execute(f"create database {database}")
    owner = _owner(server.address(OWNER, database))
    migrate(owner, APP)
    owner.execute("grant create on schema public to app")
    address = server.address(APP, database)
    is_large = size > _LARGE
    given = iter(tools)
    # The time counts from the first tool on: who makes them has to start as well.
    tools = chain([next(given)], given)
    with SharedCatalog(address) as catalog:
        began = written = time.perf_counter()

        def told(done: int, _: int) -> None:
            nonlocal written
            written = time.perf_counter()
            _say(f"{name}: {done:,} of {size:,} pushed, {done / (written - began):,.0f} a second")

        catalog.push(tools, workers=_workers() if is_large else 1, progress=told)
        built = time.perf_counter() - written
        pushed = {"pushed a second": round(size / (written - began))}
        if is_large:
            pushed |= {"indexed in s": round(built, 1)}
    _say(f"{name}: indexed in {built:.1f} s; embedding")
    index = embed()
    requests = _requests(size)
    rows: list[Row] = []
    truth: list[list[str]] = []

    def add(system: str, found: list[list[str]], times: list[float], **more: Any) -> None:
        truth[:] = truth or found
        rows.append(_row(size, system, requests, found, times) | _same(found, truth, requests))
        rows[-1] |= more
        _say(json.dumps(rows[-1]))

    add("embedded", *timed(_by_embedded(index), requests.queries))
    found, times, memory = _by_process(address, requests.queries)
    [(disk,)] = owner.execute("select pg_total_relation_size('toolfold.tools')").fetchall()
    pushed["on disk MB"] = round(disk / 1e6)
    add("shared", found, times, **{"memory MB": memory}, **pushed)
    short = requests.queries[: requests.timed]
    add("tsvector", *timed(_by_tsvector(owner, address), short))
    if python := os.environ.get("BENCH_MILVUS"):
        found, times, about = by_milvus(python, owner, short)
        add("milvus lite", found, times, **about)
    if is_large:
        for way in ways(owner, address, index, short):
            _say(json.dumps(way))
            rows.append(way)
        rows[1]["pushed onto indexes"] = _pushed_onto(address, size)
        _say(f"{name}: {rows[1]['pushed onto indexes']} a second onto the indexes")
    owner.close()
    _owner(server.address(OWNER)).execute(f"drop database {database} with (force)")
    return rows


_LARGE = 8_192
"""From how many tools on indexes are searched."""


def _requests(size: int) -> _Requests:
    """Return what is asked of a catalog of so many tools."""
    queries = list(data.queries("short"))
    folder = data.corpora()
    if size <= _LARGE or folder is None:
        return _Requests(queries, len(queries), [])
    rows = data.rows(folder / "scale" / "toolbench-rapidapi.queries.jsonl")
    labelled = rows[:: max(1, len(rows) // _LABELLED)][:_LABELLED]
    gold = [frozenset(row["gold"]) for row in labelled]
    return _Requests([*queries, *(row["query"] for row in labelled)], len(queries), gold)


def _row(
    size: int,
    system: str,
    requests: _Requests,
    hits: list[list[str]],
    times: list[float],
) -> Row:
    row: Row = {
        "tools": size,
        "system": system,
        "p50 ms": round(median(times[: requests.timed]), 2),
        "p95 ms": round(percentile(times[: requests.timed], 95), 2),
    }
    if len(hits) > requests.timed:
        pairs = list(zip(hits[requests.timed :], requests.gold, strict=True))
        found = [len(gold & set(own)) / len(gold) for own, gold in pairs if gold]
        row["recall@5"] = round(sum(found) / len(found), 3)
        row["long p50 ms"] = round(median(times[requests.timed :]), 2)
    return row


def _same(hits: list[list[str]], truth: list[list[str]], requests: _Requests) -> Row:
    """Return how often the first hit is that of the embedded index, and how much of five is.

    The share of five is that of the short requests, and, apart, that of the others.
    """
    pairs = list(zip(hits, truth, strict=False))
    short, long = pairs[: requests.timed], pairs[requests.timed :]

    def five(some: Sequence[tuple[list[str], list[str]]]) -> float:
        return round(sum(len(set(a) & set(b)) for a, b in some) / 5 / len(some), 3)

    row = {
        "same first": round(sum(a[:1] == b[:1] for a, b in short) / len(short), 3),
        "same five": five(short),
    }
    return row | ({"long same five": five(long)} if long else {})


def _by_embedded(index: Embedded) -> Callable[[str], list[str]]:
    return lambda query: [index.names[m.position] for m in index.searcher.search(query, 5)]


def _by_process(address: str, queries: Sequence[str]) -> tuple[list[list[str]], list[float], float]:
    """Search in a process that does nothing else, and say what it holds in memory, too."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.shared_search", address, "default"],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)
    return found["hits"], found["times"], found["memory"]


def _by_tsvector(owner: Any, address: str) -> Callable[[str], list[str]]:
    """Return PostgreSQL's own text search over names and descriptions, any word, by rank."""
    import psycopg

    owner.execute(f"set max_parallel_workers_per_gather = {_workers()}")
    owner.execute(
        "create table public.plain as select name, to_tsvector('english',"
        " translate(name, '_.', '  ') || ' ' ||"
        " coalesce(replace(definition, '\\u0000', '')::json ->> 'description', ''))"
        " as words from toolfold.tools"
    )
    owner.execute("create index on public.plain using gin (words)")
    owner.execute("grant select on public.plain to app")
    owner.execute("vacuum analyze public.plain")
    connection = psycopg.connect(address, autocommit=True)
    statement = (
        "select name from plain, to_tsquery('english', %s) q"
        " where words @@ q order by ts_rank(words, q, 1) desc, name limit 5"
    )

    def search(query: str) -> list[str]:
        words = " | ".join(w for w in "".join(c if c.isalnum() else " " for c in query).split())
        return [row[0] for row in connection.execute(statement, (words,))]

    return search


def _pushed_onto(address: str, size: int) -> int:
    """Return how many tools a second are added to a catalog that has its indexes."""
    from toolfold.shared import SharedCatalog

    more = list(_fed(size + _MORE, size))
    with SharedCatalog(address) as catalog:
        began = time.perf_counter()
        catalog.push(more, workers=1)
        return round(len(more) / (time.perf_counter() - began))


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr)
