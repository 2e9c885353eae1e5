"""What a user will see of search: every figure of it that the README and the model card state.

    python -m bench figures

Dev requests only. Three kinds of sets: catalogs of which nothing was trained on, neither tools
nor requests, as people ask and as a model asks; catalogs whose tools or like requests were
trained on; and requests that no tool serves, by the size of the catalog. Peers are in
`python -m bench asked` and `lexical`.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from bench import data
from toolfold import Settings
from toolfold.catalog import Catalog
from toolfold.evaluation import Corpus, Result, load_corpus, measure, measure_answers
from toolfold.tool import Tool

__all__ = ["figures", "mistyped", "sized"]

Row = dict[str, Any]

_UNSEEN = ("azure-mcp", "acebench", "nestful")
_SEEN = ("seal-tools", "metatool")
_REQUESTS_AT_MOST = 600
_SIZES = (15, 120, 383, 700)
_SUBSETS = 6
_FLOOR = Settings(enabled="on", cache_dir="off")
_BARE = replace(_FLOOR, relevance_floor=0.0)
_WORD = re.compile(r"[A-Za-z]{4,}")


def figures() -> list[Row]:
    """Search as the README and the model card state it: recall, answers, false hits, slips."""
    folder = data.corpora()
    if folder is None:
        print("note: skipped, the corpora are absent", file=sys.stderr)
        return []
    people = [*_people(folder)]
    asked = [*_asked(folder)]
    groups = {
        "mean, catalogs not trained on": people[: len(_UNSEEN)],
        "mean, people's words": people,
        "mean, as a model asks": asked,
    }
    rows = {corpus.name: _served(corpus) for corpus in (*people, *asked)}
    means = [_mean(name, [rows[c.name] for c in group]) for name, group in groups.items()]
    return [*rows.values(), *means, *map(_unserved, _nothing(folder))]


def _people(folder: Path) -> Iterator[Corpus]:
    for name in (*_UNSEEN, *_SEEN):
        yield load_corpus(folder / name, split="dev").drawn(_REQUESTS_AT_MOST, None, 0)


def _asked(folder: Path) -> Iterator[Corpus]:
    yield load_corpus(folder / "azure-asked", split="dev")
    for name in (*_UNSEEN[1:], *_SEEN):
        queries = folder / "asked" / f"{name}.jsonl"
        corpus = load_corpus(folder / name, split="dev", queries=queries)
        yield corpus._replace(name=f"{name}, asked")


def _served(corpus: Corpus) -> Row:
    """Return what search does on requests that a tool serves."""
    result, bare = measure(corpus, _FLOOR), measure(corpus, _BARE)
    slips = measure(mistyped(corpus), _FLOOR)
    answers = measure_answers(corpus, _FLOOR).metrics
    return {
        "set": corpus.name,
        "tools": len(corpus.catalog),
        "requests": len(corpus.requests),
        "recall@1": _rate(result, "recall@1"),
        "recall@5": _rate(result, "recall@5"),
        "no floor": _rate(bare, "recall@5"),
        "recall@10": _rate(result, "recall@10"),
        "mistyped": _rate(slips, "recall@5"),
        "in the answer": round(answers["answer_recall"], 3),
        "first hit": round(answers["first_hit"], 3),
        "tokens": round(answers["answer_tokens"]),
        "of plain": round(answers["answer_tokens"] / answers["plain_tokens"], 2),
    }


def _rate(result: Result, metric: str) -> float:
    return round(result.metrics[metric] or 0.0, 3)


def _mean(name: str, rows: list[Row]) -> Row:
    keys = [key for key in rows[0] if key not in ("set", "tools", "requests", "tokens")]
    means = {key: round(fmean(row[key] for row in rows), 3) for key in keys}
    return {"set": name, **means, "tokens": round(fmean(row["tokens"] for row in rows))}


def mistyped(corpus: Corpus) -> Corpus:
    """Return a corpus with two letters swapped in the longest word of each request."""
    draw = random.Random(1)
    requests = tuple(replace(r, query=_swapped(r.query, draw)) for r in corpus.requests)
    return corpus._replace(requests=requests)


def _swapped(query: str, draw: random.Random) -> str:
    longest = max(_WORD.finditer(query), key=lambda match: len(match[0]), default=None)
    if longest is None:
        return query
    at = longest.start() + draw.randrange(len(longest[0]) - 1)
    return query[:at] + query[at + 1] + query[at] + query[at + 2 :]


def _nothing(folder: Path) -> Iterator[Corpus]:
    """Yield the requests that no tool serves, in catalogs of several sizes."""
    azure = load_corpus(folder / "azure-unserved")
    others = [
        tool
        for name in ("github-oos", "deploy-226")
        for tool in Catalog.read(data.rows(folder / name / "tools.jsonl"))
        if tool.name not in azure.catalog
    ]
    for size in _SIZES:
        yield sized(azure, others, size, _SUBSETS)
    yield load_corpus(folder / "github-oos")
    yield load_corpus(folder / "irrelevance")


def sized(corpus: Corpus, others: list[Tool], size: int, subsets: int) -> Corpus:
    """Return the requests, each with a catalog of a size: drawn, and filled up with others.

    Args:
        corpus: The requests, and the catalog to draw from.
        others: Tools that fill it up where it is too small.
        size: How many tools.
        subsets: How many catalogs to draw where there are more tools than that.
    """
    own = list(corpus.catalog)
    draw = random.Random(size)
    catalogs = [
        Catalog([*draw.sample(own, min(size, len(own))), *others[: max(size - len(own), 0)]])
        for _ in range(subsets if size < len(own) else 1)
    ]
    requests = tuple(
        replace(request, catalog=catalogs[i % len(catalogs)])
        for i, request in enumerate(corpus.requests)
    )
    return corpus._replace(name=f"{corpus.name}, {len(catalogs[0])}", requests=requests)


def _unserved(corpus: Corpus) -> Row:
    """Return how often search finds what is not there."""
    result, answers = measure(corpus, _FLOOR), measure_answers(corpus, _FLOOR).metrics
    sizes = {len(r.catalog or corpus.catalog) for r in corpus.requests}
    return {
        "set": corpus.name,
        "tools": f"{min(sizes)} to {max(sizes)}" if len(sizes) > 1 else max(sizes),
        "requests": len(corpus.requests),
        "false hits": _rate(result, "false_hit_rate"),
        "called close": round(answers["unserved_close"], 3),
    }
