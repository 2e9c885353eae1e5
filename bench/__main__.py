"""`make bench`: what toolfold costs and saves, beside its peers, in one run.

    python -m bench            # everything but recall on test sets and what takes minutes
    python -m bench tokens     # one part: tokens, conversation, imports, fold, search, lexical,
                               # runtime, gateway, proxy, recall, asked, asked-test, unseen,
                               # figures, scale, statements, against, chaos, reload, memory,
                               # remembered, shared, shared-recall, inspector, trips, beside
    python -m bench beside --peer minilm   # one peer of those that `beside` measures
    python -m bench page       # nothing but the page, from what was measured before

Every ratio is taken within this run, on this machine, over the same catalog and queries. What a
part measures is kept in `.bench/results`, and `.bench/page.html` is composed of what lies there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench import data
from bench.against import against
from bench.asked import asked, asked_test
from bench.beside import OURS, beside
from bench.chaos import chaos
from bench.figures import figures
from bench.gateway import gateway
from bench.inspector import inspector
from bench.memory import KINDS
from bench.page import bench_html
from bench.peers.peers import PEERS, Peer, PeerUnavailableError
from bench.proxy import proxy
from bench.reloads import reload
from bench.results import FOLDER, keep, kept, now
from bench.runtime import runtime
from bench.shared import shared
from bench.shared_recall import shared_recall
from bench.statements import statements
from bench.tokens import conversation_rows, exact_counter, why_not_exact
from bench.trips import trips
from bench.unseen import unseen
from toolfold import Settings, fold
from toolfold.evaluation import LabelledRequest, load_corpus, measure
from toolfold.evaluation.measure import percentile, recall

Row = dict[str, Any]

_AGENT_TOOLS = Path(__file__).resolve().parents[1] / "tests" / "data" / "agent_19_tools.json"
_WINDOW = 131_072
_TEST_SETS = (
    "toollinkos",
    "callnavi",
    "seal-tools",
    "stabletoolbench",
    "bfcl",
    "toolalpaca",
    "metatool",
)
_PEERS = ("hermes", "fastmcp", "bm25s", "tantivy")
_BESIDE = "beside"
_PAGE = "page"


def main() -> None:
    """Run the parts that were asked for and print their tables."""
    parts: dict[str, Callable[[], list[Row]]] = {
        "tokens": tokens,
        "conversation": conversation,
        "imports": imports,
        "fold": folding,
        "search": searching,
        "lexical": lexical,
        "runtime": runtime,
        "gateway": gateway,
        "proxy": proxy,
        "recall": recalling,
        "asked": asked,
        "asked-test": asked_test,
        "unseen": unseen,
        "figures": figures,
        "scale": scale,
        "statements": statements,
        "against": against,
        "chaos": chaos,
        "reload": reload,
        "memory": memory,
        "remembered": remembered,
        "shared": shared,
        "shared-recall": shared_recall,
        "inspector": inspector,
        "trips": trips,
    }
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", choices=[[], *parts, _BESIDE, _PAGE], help="which parts to run"
    )
    parser.add_argument(
        "--peer", action="append", choices=(OURS, *PEERS), help="beside whom; repeatable"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--results", type=Path, default=FOLDER, help="where results are kept")
    parser.add_argument("--html", type=Path, default=FOLDER.parent / "page.html", help="the page")
    arguments = parser.parse_args()
    if note := data.missing():
        print(f"note: {note}", file=sys.stderr)
    chosen = arguments.parts or [
        "tokens",
        "conversation",
        "imports",
        "fold",
        "search",
        "lexical",
        "runtime",
        "gateway",
        "inspector",
        "trips",
        _BESIDE,
    ]
    results: dict[str, list[Row]] = {}
    for part in chosen:
        if part == _PAGE:
            continue
        if part == _BESIDE:
            results[part] = _measure_beside(arguments.peer, arguments.results)
        else:
            started = time.perf_counter()
            results[part] = parts[part]()
            made = now(part, _title(parts[part]), _command(part), results[part], started)
            if results[part]:
                keep(made, arguments.results)
        if not arguments.json:
            title = _title(beside if part == _BESIDE else parts[part])
            _print(part, title, results[part])
    arguments.html.parent.mkdir(parents=True, exist_ok=True)
    arguments.html.write_text(bench_html(kept(arguments.results)), encoding="utf-8")
    print(f"page: {arguments.html}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(results, indent=2))
    if any(row.get("held") == "no" for rows in results.values() for row in rows):
        raise SystemExit(1)


def _measure_beside(peers: Sequence[str] | None, folder: Path) -> list[Row]:
    """Measure ours and the peers, keep each as soon as it is there, and return all rows."""
    found: list[Row] = []
    started = time.perf_counter()
    for name, rows in beside(peers or (OURS, *PEERS)):
        command = f"{_command(_BESIDE)} --peer {name}"
        keep(now(f"{_BESIDE}-{name}", _title(beside), command, rows, started), folder)
        found += rows
        started = time.perf_counter()
    return found


def _title(part: Callable[..., object]) -> str:
    return (part.__doc__ or "").split("\n")[0].rstrip(".")


def _command(part: str) -> str:
    return f"python -m bench {part}"


def tokens() -> list[Row]:
    """Tokens of the model's tool list, by o200k_base and by characters over four."""
    exact = exact_counter()
    if exact is None:
        print(f"note: no exact counts: {why_not_exact()}", file=sys.stderr)
    tools = list(data.catalog("deploy-226").tools)
    keys = ("name", "description", "parameters")
    open_ = [{"type": "function", "function": {key: t[key] for key in keys}} for t in tools]
    rows = [_token_row("all schemas", open_, exact)]
    for listing in ("off", "sources", "names"):
        settings = Settings(enabled="on", listing=listing)
        seen = fold(tools, shape="openai-chat", settings=settings).tools
        rows.append(_token_row(f"bridge, listing {listing}", seen, exact))
    stubs = fold(tools, shape="openai-chat", settings=Settings(enabled="on", strategy="stub")).tools
    rows.append(_token_row("stubs", stubs, exact))
    before = rows[0]
    for row in rows[1:]:
        key = "o200k_base" if exact else "characters/4"
        row["saved"] = f"{100 * (1 - row[key] / before[key]):.1f} %"
    return [*rows, *_stub_rows(exact)]


def remembered() -> list[Row]:
    """Milliseconds of a search with a memory of many requests, and what that takes."""
    rows: list[Row] = []
    for count in (1_000, 10_000, 100_000):
        done = subprocess.run(
            [sys.executable, "-m", "bench.remembered", str(count)],
            capture_output=True,
            text=True,
            check=True,
        )
        rows.append(json.loads(done.stdout))
    return rows


def conversation() -> list[Row]:
    """Tokens that ten messages with a tool each cost to read: unfolded, bridge, native."""
    return conversation_rows(data.catalog("deploy-226").tools, exact_counter())


def _token_row(label: str, tools: Any, exact: Callable[[str], int] | None) -> Row:
    text = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
    count = {"o200k_base": exact(text)} if exact else {}
    return {"what": label, "tools": len(tools), **count, "characters/4": -(-len(text) // 4)}


def _stub_rows(exact: Callable[[str], int] | None) -> list[Row]:
    tools = json.loads(_AGENT_TOOLS.read_text(encoding="utf-8"))
    stubbed = fold(tools, settings=Settings(enabled="on", strategy="stub")).tools
    rows = [
        _token_row("agent surface", tools, exact),
        _token_row("the same, stubs", stubbed, exact),
    ]
    lists = [len(json.dumps(each, separators=(",", ":"))) for each in (tools, stubbed)]
    schemas = [
        sum(len(json.dumps(t["function"]["parameters"], separators=(",", ":"))) for t in each)
        for each in (tools, stubbed)
    ]
    rows[1]["saved"] = (
        f"{100 * (1 - lists[1] / lists[0]):.1f} % of the list, "
        f"{100 * (1 - schemas[1] / schemas[0]):.1f} % of the schemas"
    )
    return rows


def imports() -> list[Row]:
    """Milliseconds that an import adds to a bare interpreter."""
    bare = _start_ms("pass")
    return [
        {"what": f"import {name}", "ms": round(_start_ms(f"import {name}") - bare, 1)}
        for name in ("toolfold", "numpy", "click", "json")
    ]


def _start_ms(code: str) -> float:
    times: list[float] = []
    for _ in range(9):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append((time.perf_counter() - started) * 1e3)
    return median(times)


def folding() -> list[Row]:
    """Milliseconds of `fold`, first time and warm."""
    rows: list[Row] = []
    for name in ("deploy-226", "seal-500", "seal-4076"):
        catalog = data.catalog(name)
        tools = [dict(tool) for tool in catalog.tools]
        first = _ms(lambda tools=tools: fold(tools, context_length=_WINDOW))
        warm = [_ms(lambda tools=tools: fold(tools, context_length=_WINDOW)) for _ in range(101)]
        row = {"catalog": catalog.name, "tools": len(tools), "first ms": round(first, 1)}
        rows.append({**row, "warm p50 ms": round(median(warm), 3)})
    return rows


def searching() -> list[Row]:
    """Milliseconds of one warm search, and how many times ours the peers' take.

    `search` is the ranking alone, `bridge` the whole tool call as a model makes it. The peers
    rank by words, so `bm25` is like for like; `hybrid` is what we do by default.
    """
    rows: list[Row] = []
    for name in ("deploy-226", "seal-500", "seal-4076"):
        catalog = data.catalog(name)
        for kind in ("short", "long"):
            queries = data.queries(kind)
            about = {"catalog": catalog.name, "queries": kind}
            own = {ranker: _own(catalog.tools, queries, ranker) for ranker in ("hybrid", "bm25")}
            rows.extend({**about, "system": f"toolfold {key}", **row} for key, row in own.items())
            rows.extend(
                {**about, "system": peer, **_peer(peer, catalog.tools, queries, own)}
                for peer in _PEERS
            )
    return rows


def _own(tools: Sequence[data.Tool], queries: Sequence[str], ranker: str) -> Row:
    folded = fold(tools, settings=Settings(enabled="on", ranker=ranker, cache_dir="off"))
    for query in queries:
        folded.resolve("tool_search", {"query": query})
    search = [_ms(lambda q=query: folded.bridge.search(q, 5)) for query in queries]
    bridge = [_ms(lambda q=query: folded.resolve("tool_search", {"query": q})) for query in queries]
    return {
        "search p50 ms": round(median(search), 3),
        "search p95 ms": round(percentile(search, 95), 3),
        "bridge p50 ms": round(median(bridge), 3),
    }


def _peer(
    name: str, tools: Sequence[data.Tool], queries: Sequence[str], own: dict[str, Row]
) -> Row:
    try:
        with Peer(name, tools) as peer:
            peer.search(queries[:5])
            times = peer.search(queries).ms
    except PeerUnavailableError as error:
        print(f"note: {error}", file=sys.stderr)
        return {"note": "skipped"}
    row: Row = {
        "search p50 ms": round(median(times["search"]), 3),
        "search p95 ms": round(percentile(times["search"], 95), 3),
    }
    if "bridge" in times:
        row["bridge p50 ms"] = round(median(times["bridge"]), 3)
    for layer in ("search", "bridge"):
        key = f"{layer} p50 ms"
        if key in row:
            ratios = (f"{row[key] / mine[key]:.1f}" for mine in own.values())
            row[f"{layer}: x hybrid, x bm25"] = ", ".join(ratios)
    return row


def recalling() -> list[Row]:
    """Recall@5 on the test splits of seven public corpora, ours and the other systems'."""
    folder = data.corpora()
    if folder is None:
        print("note: skipped, the corpora are absent", file=sys.stderr)
        return []
    rows: dict[str, Row] = {}
    for name in _TEST_SETS:
        corpus = load_corpus(folder / name, split="test")
        tools = [dict(tool.raw or {}) for tool in corpus.catalog]
        found: Row = {
            f"toolfold {ranker}": measure(corpus, Settings(ranker=ranker)).metrics["recall@5"]
            for ranker in ("bm25", "hybrid")
        }
        for peer in ("hermes", "fastmcp"):
            found[peer] = _peer_recall(peer, tools, corpus.requests).get("recall@5")
        for system, value in found.items():
            rows.setdefault(system, {"system": system})[name] = value and round(value, 3)
    for row in rows.values():
        told = [row[name] for name in _TEST_SETS if row[name] is not None]
        row["mean"] = round(sum(told) / len(told), 3) if told else None
    return list(rows.values())


def lexical() -> list[Row]:
    """Recall@5 and milliseconds on dev requests: by words alone, ours and the libraries'."""
    folder = data.corpora()
    if folder is None:
        print("note: skipped, the corpora are absent", file=sys.stderr)
        return []
    rows: list[Row] = []
    for name in ("seal-tools", "metatool"):
        corpus = load_corpus(folder / name, split="dev")
        requests = corpus.requests[:700]
        for ranker in ("bm25", "hybrid"):
            result = measure(corpus._replace(requests=requests), Settings(ranker=ranker))
            row = {"corpus": name, "system": f"toolfold {ranker}"}
            recalled = round(result.metrics["recall@5"] or 0, 3)
            rows.append({**row, "recall@5": recalled, "p50 ms": round(result.ms_p50, 3)})
        tools = [dict(tool.raw or {}) for tool in corpus.catalog]
        rows.extend(
            {"corpus": name, "system": peer} | _peer_recall(peer, tools, requests)
            for peer in _PEERS
        )
    return rows


def _peer_recall(name: str, tools: Sequence[data.Tool], requests: Sequence[LabelledRequest]) -> Row:
    try:
        with Peer(name, tools) as peer:
            results = peer.search([request.query for request in requests])
    except PeerUnavailableError as error:
        print(f"note: {error}", file=sys.stderr)
        return {"note": "skipped"}
    found = [recall(r, names, 5) for r, names in zip(requests, results.names, strict=True)]
    return {
        "recall@5": round(sum(found) / len(found), 3),
        "p50 ms": round(median(results.ms["search"]), 3),
    }


def scale() -> list[Row]:
    """One process at 46,936 tools: seconds to build and to load, one search, peak memory."""
    folder = tempfile.mkdtemp(prefix="toolfold-bench-")
    command = [sys.executable, "-m", "bench.scale", folder]
    try:
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(2)
        ]
    finally:
        shutil.rmtree(folder)
    return [{"index": name, **run} for name, run in zip(("made", "kept"), runs, strict=True)]


def memory() -> list[Row]:
    """Resident MB on the way through 2,000 distinct catalogs and 20,000 searches."""
    rows: list[Row] = []
    for kind in KINDS:
        command = [sys.executable, "-m", "bench.memory", kind]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout))
    return rows


def _ms(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1e3


def _print(part: str, title: str, rows: Sequence[Row]) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_text(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(columns)]
    print(f"\n{part}: {title}")
    for row in (columns, *cells):
        print("  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)))


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main()
