"""Requests as a model puts them to a search tool: what the answers name, and what they cost.

    python -m bench asked

Ours is the whole answer of `tool_search`. A peer is asked need by need, for five hits each, as
its own search tool would be; what it writes is counted as it stands. Dev requests only.
"""

from __future__ import annotations

import sys
from statistics import fmean
from typing import Any

from bench import data
from bench.peers.peers import Peer, PeerUnavailableError
from toolfold import Settings
from toolfold.evaluation import Corpus, load_corpus, measure_answers
from toolfold.evaluation.measure import recall

__all__ = ["asked"]

Row = dict[str, Any]

_SETS = ("acebench", "nestful", "seal-tools", "metatool")
_PEERS = ("hermes", "fastmcp")
_CHARACTERS_A_TOKEN = 4


def asked() -> list[Row]:
    """As models ask: right tools in the answer, first hits, tokens (characters over four)."""
    folder = data.corpora()
    if folder is None or not (folder / "asked").is_dir():
        print("note: skipped, the corpora are absent", file=sys.stderr)
        return []
    corpora = [load_corpus(folder / "azure-asked", split="dev")]
    for name in _SETS:
        queries = folder / "asked" / f"{name}.jsonl"
        corpora.append(load_corpus(folder / name, split="dev", queries=queries))
    rows = [row for corpus in corpora for row in (_ours(corpus), *_peers(corpus))]
    systems = dict.fromkeys(row["system"] for row in rows)
    return [*rows, *(_mean(system, rows) for system in systems)]


def _ours(corpus: Corpus) -> Row:
    metrics = measure_answers(corpus, Settings(enabled="on", cache_dir="off")).metrics
    return _row(
        corpus.name,
        "toolfold",
        metrics["answer_recall"],
        metrics["first_hit"],
        metrics["answer_tokens"],
    )


def _peers(corpus: Corpus) -> list[Row]:
    tools = [dict(tool.raw or {}) for tool in corpus.catalog]
    needs = [[need.strip() for need in r.query.split("|") if need.strip()] for r in corpus.requests]
    rows: list[Row] = []
    for name in _PEERS:
        try:
            with Peer(name, tools) as peer:
                results = peer.search([need for own in needs for need in own])
        except PeerUnavailableError as error:
            print(f"note: {error}", file=sys.stderr)
            continue
        answers = iter(zip(results.names, results.characters, strict=True))
        per_request = [[next(answers) for _ in own] for own in needs]
        found: list[float] = []
        first: list[float] = []
        tokens: list[float] = []
        for request, own in zip(corpus.requests, per_request, strict=True):
            names = [tool for hits, _ in own for tool in hits]
            firsts = [hits[0] for hits, _ in own if hits]
            found.append(recall(request, names, len(names)))
            first.append(float(recall(request, firsts, len(firsts)) > 0))
            tokens.append(sum(characters for _, characters in own) / _CHARACTERS_A_TOKEN)
        rows.append(_row(corpus.name, name, fmean(found), fmean(first), fmean(tokens)))
    return rows


def _row(corpus: str, system: str, found: float, first: float, tokens: float) -> Row:
    return {
        "corpus": corpus,
        "system": system,
        "in the answer": round(found, 3),
        "first hit": round(first, 3),
        "tokens": round(tokens),
    }


def _mean(system: str, rows: list[Row]) -> Row:
    own = [row for row in rows if row["system"] == system]
    means = (fmean(row[key] for row in own) for key in ("in the answer", "first hit", "tokens"))
    return _row("mean", system, *means)
