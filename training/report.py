"""What the package's search does on every dev set, as one table: before a change, and after it.

    python training/report.py [--json FILE] [--only NAME...]

Recall with the floor and without, in people's words and as a model asks, with typing errors;
false hits by the size of the catalog. Nothing here is trained or fitted on, and no test split
is read.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from catalog import CORPORA, Tool, package_tool, rows
from dataset import DATA

from toolfold import Catalog, Settings
from toolfold.evaluation import Corpus, LabelledRequest, Result, load_corpus, measure

SERVED = ("azure-mcp", "acebench", "nestful", "seal-tools", "metatool")
ASKED = ("acebench", "nestful", "seal-tools", "metatool")
SIZES = (1, 5, 15, 50, 120, 383, 700, 1500, 5000)
SUBSETS = 6
SAMPLE = 600
_WORD = re.compile(r"[A-Za-z]{4,}")


def served() -> Iterator[Corpus]:
    """Yield the sets of requests that a tool serves."""
    for name in SERVED:
        yield load_corpus(CORPORA / name, split="dev").drawn(SAMPLE, None, 0)
    yield load_corpus(CORPORA / "azure-asked", split="dev")
    for name in ASKED:
        yield asked(name)


def asked(name: str) -> Corpus:
    """Return the requests of a corpus as a model asks."""
    file = CORPORA / f"asked/{name}.jsonl"
    return load_corpus(CORPORA / name, queries=file, split="dev")._replace(name=f"asked/{name}")


def mistyped(corpus: Corpus) -> Corpus:
    """Return a corpus with two letters swapped in the longest word of each request."""
    draw = random.Random(1)
    requests = [replace(r, query=swapped(r.query, draw)) for r in corpus.requests]
    return corpus._replace(name=f"{corpus.name}, mistyped", requests=tuple(requests))


def swapped(query: str, draw: random.Random) -> str:
    """Swap two neighbouring letters inside the longest word."""
    longest = max(_WORD.finditer(query), key=lambda m: len(m[0]), default=None)
    if longest is None:
        return query
    at = longest.start() + draw.randrange(len(longest[0]) - 1)
    return query[:at] + query[at + 1] + query[at] + query[at + 2 :]


def unserved() -> Iterator[Corpus]:
    """Yield the sets of requests that nothing serves."""
    azure = load_corpus(CORPORA / "azure-unserved")
    others = list(more_tools())
    model_asked = [r for name in ASKED for r in asked(name).requests]
    model_asked = [LabelledRequest(need, frozenset()) for r in model_asked for need in r.needs]
    for size in SIZES:
        yield sized(azure, others, size, "azure-unserved")
    for size in (15, 120, 383, 1500):
        corpus = azure._replace(requests=tuple(random.Random(2).sample(model_asked, 200)))
        yield sized(corpus, others, size, "asked of azure")
    strangers = load_corpus(CORPORA / "azure-asked")
    needs = [LabelledRequest(need, frozenset()) for r in strangers.requests for need in r.needs]
    for name in ("nestful", "metatool", "github-oos", "seal-tools"):
        corpus = load_corpus(CORPORA / name)
        yield corpus._replace(name=f"azure-asked of {name}", requests=tuple(needs), unknown=())
    yield load_corpus(CORPORA / "github-oos")
    yield load_corpus(CORPORA / "irrelevance")


def more_tools() -> Iterator[Any]:
    """Yield tools that serve none of the requests: other vendors' infrastructure."""
    for name in ("github-oos", "deploy-226"):
        yield from (
            Tool(r["name"], r["description"] or "") for r in rows(CORPORA / name / "tools.jsonl")
        )
    if (DATA / "tools.jsonl.gz").exists():
        for row in rows(DATA / "tools.jsonl.gz"):
            if row[0] == "aws":
                yield Tool(row[1], row[2], tuple((p[0], p[1]) for p in row[3]), row[4])


def sized(corpus: Corpus, others: list[Tool], size: int, name: str) -> Corpus:
    """Return requests each of which has a catalog of a size, from a few drawn at random."""
    draw = random.Random(size)
    own = list(corpus.catalog)
    catalogs = []
    for _ in range(SUBSETS if size < len(own) else 1):
        tools = draw.sample(own, min(size, len(own)))
        known = {tool.name for tool in tools}
        for other in draw.sample(others, min(len(others), 2 * max(size - len(own), 0))):
            if len(tools) < size and other.name not in known:
                known.add(other.name)
                tools.append(package_tool(other))
        catalogs.append(Catalog(tools))
    requests = [
        replace(r, catalog=catalogs[i % len(catalogs)]) for i, r in enumerate(corpus.requests)
    ]
    return corpus._replace(name=f"{name}, {len(catalogs[0])} tools", requests=tuple(requests))


def line(result: Result, bare: Result | None) -> str:
    """Return one row of the table."""
    if bare is None:
        return f"{result.corpus:34s} false hits {result.metrics['false_hit_rate']:.3f}"
    cells = " ".join(f"{result.metrics[f'recall@{k}'] or 0:.3f}" for k in (1, 5, 10, 20))
    without = " ".join(f"{bare.metrics[f'recall@{k}'] or 0:.3f}" for k in (1, 5, 10, 20))
    return f"{result.corpus:34s} {cells}   without floor {without}   {result.ms_p50:.2f} ms"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    arguments = parser.parse_args()
    floor, bare = Settings(cache_dir="off"), Settings(relevance_floor=0.0, cache_dir="off")
    found: dict[str, Any] = {}
    sums: dict[str, list[tuple[float, float, float]]] = {}
    kinds = (
        ("served", served),
        ("mistyped", lambda: map(mistyped, served())),
        ("unserved", unserved),
    )
    for kind, corpora in kinds:
        if arguments.only and kind not in arguments.only:
            continue
        for corpus in corpora():
            result = measure(corpus, floor)
            other = measure(corpus, bare) if kind != "unserved" else None
            print(line(result, other), flush=True)
            found[result.corpus] = {
                **result.metrics, "bare": other and other.metrics, "curve": result.curve
            }  # fmt: skip
            if other is not None:
                key = "asked" if "asked" in result.corpus else "people"
                sums.setdefault(f"{kind}, {key}", []).append(
                    tuple(float(m or 0) for m in (result.metrics["recall@1"], result.metrics["recall@5"], other.metrics["recall@5"]))  # type: ignore[arg-type]
                )  # fmt: skip
    for name, values in sums.items():
        first, five, without = (fmean(v[i] for v in values) for i in range(3))
        print(f"mean {name:30s} @1 {first:.4f} @5 {five:.4f} without floor @5 {without:.4f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
