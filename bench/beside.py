"""Ours beside every peer, on the same requests and catalogs: what is found, what is not there.

    python -m bench beside                  # ours, and every peer that can be installed
    python -m bench beside --peer minilm    # one of them; its figures join those of the others

Dev requests as people and as models put them, 200 of each set at most; a request is searched for
need by need, five hits each. Tokens are characters over four of what a model then reads: the
answer, and where a peer puts what it found into the model's list, these definitions. Trips are
those before a right tool that was found can be called: its search, and asking what it takes where
no model has read that by then. False hits
are requests that no tool serves and that get a hit all the same, by the size of the catalog.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from bench import data
from bench.figures import sized
from bench.peers.peers import PEERS, Peer, PeerUnavailableError
from bench.progress import Progress
from toolfold import Answer, Session, Settings
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.evaluation import Corpus, load_corpus, measure_answers
from toolfold.evaluation.measure import interval_of, recall_of_needs
from toolfold.prompts import TOOL_SEARCH

__all__ = ["OURS", "beside"]

Row = dict[str, Any]

OURS = "toolfold"
_SERVED = {
    "azure-mcp": "azure-mcp",
    "azure-mcp, asked by a model": "azure-asked",
    "nestful": "nestful",
    "metatool": "metatool",
}
_SIZES = (15, 120, 383, 700)
_SUBSETS = 2
_REQUESTS_AT_MOST = 200
_UNSERVED_AT_MOST = 100
_HITS = 5
_CHARACTERS_A_TOKEN = 4
_SETTINGS = Settings(enabled="on", cache_dir="off")


class _Asked(NamedTuple):
    """What one query got."""

    names: tuple[str, ...]
    characters: int
    ready: tuple[str, ...]
    ms: float


Answers = dict[tuple[str, str], _Asked]
"""By the fingerprint of the catalog and the query."""


def beside(names: Sequence[str] = (OURS, *PEERS)) -> Iterator[tuple[str, list[Row]]]:
    """Recall, false hits, tokens and milliseconds of every system on the same requests.

    Yields:
        Each system's name and rows, as they come; one row with the reason where it cannot be had.
    """
    folder = data.corpora()
    if folder is None:
        print("note: skipped, the corpora are absent", file=sys.stderr)
        return
    served, unserved = _served(folder), _unserved(folder)
    queries = _queries([*served, *unserved])
    with Progress("beside", len(names) * len(queries)) as progress:
        for name in names:
            try:
                answers = _answers(name, queries, progress)
            except PeerUnavailableError as error:
                yield name, [{"system": name, "note": str(error)}]
                continue
            yield (
                name,
                [
                    *(_found(name, corpus, answers) for corpus in served),
                    *(_not_there(name, corpus, answers) for corpus in unserved),
                ],
            )


def _served(folder: Path) -> list[Corpus]:
    corpora = (load_corpus(folder / where, split="dev") for where in _SERVED.values())
    drawn = (corpus.drawn(_REQUESTS_AT_MOST, None, 0) for corpus in corpora)
    return [
        corpus._replace(name=name, requests=tuple(r for r in corpus.requests if r.gold))
        for name, corpus in zip(_SERVED, drawn, strict=True)
    ]


def _unserved(folder: Path) -> list[Corpus]:
    azure = load_corpus(folder / "azure-unserved").drawn(_UNSERVED_AT_MOST, None, 0)
    others = [
        tool
        for name in ("github-oos", "deploy-226")
        for tool in Catalog.read(data.rows(folder / name / "tools.jsonl"))
        if tool.name not in azure.catalog
    ]
    return [sized(azure, others, size, _SUBSETS) for size in _SIZES]


def _queries(corpora: Sequence[Corpus]) -> dict[str, tuple[Catalog, list[str]]]:
    """Return what is asked of each catalog, whichever sets it is part of: it is loaded once."""
    found: dict[str, tuple[Catalog, list[str]]] = {}
    for corpus in corpora:
        for request in corpus.requests:
            catalog = request.catalog or corpus.catalog
            found.setdefault(catalog.fingerprint, (catalog, []))[1].extend(request.needs)
    return found


def _answers(
    name: str, queries: dict[str, tuple[Catalog, list[str]]], progress: Progress
) -> Answers:
    answers: Answers = {}
    for fingerprint, (catalog, needs) in queries.items():
        progress.step(f"{name}, {len(needs)} searches in {len(catalog)} tools")
        ask = _ours if name == OURS else _theirs
        for need, asked in zip(needs, ask(name, catalog, needs), strict=True):
            answers[fingerprint, need] = asked
    return answers


def _ours(_: str, catalog: Catalog, needs: Sequence[str]) -> list[_Asked]:
    bridge = Bridge.over(catalog, _SETTINGS)
    bridge.search("warm up", 1)
    asked: list[_Asked] = []
    for need in needs:
        started = time.perf_counter()
        hits = bridge.search(need, _HITS)
        ms = (time.perf_counter() - started) * 1e3
        answer = bridge.resolve(TOOL_SEARCH, {"query": need}, Session())
        shown = answer.hits if isinstance(answer, Answer) else ()
        ready = tuple(hit.name for hit in shown if hit.shown == "signature")
        asked.append(_Asked(tuple(hit.name for hit in hits), 0, ready, ms))
    return asked


def _theirs(name: str, catalog: Catalog, needs: Sequence[str]) -> list[_Asked]:
    with Peer(name, [dict(tool.raw or {}) for tool in catalog], _HITS) as peer:
        results = peer.search(needs)
    return [
        _Asked(*told)
        for told in zip(
            results.names, results.characters, results.ready, results.ms["search"], strict=True
        )
    ]


def _found(name: str, corpus: Corpus, answers: Answers) -> Row:
    """Return what a system finds of what is there."""
    of = corpus.catalog.fingerprint
    told = [[answers[of, need] for need in request.needs] for request in corpus.requests]
    shares = [
        recall_of_needs(request, [asked.names for asked in own], _HITS)
        for request, own in zip(corpus.requests, told, strict=True)
    ]
    if name == OURS:
        tokens = measure_answers(corpus, _SETTINGS).metrics["answer_tokens"]
    else:
        read = fmean(sum(asked.characters for asked in own) for own in told)
        tokens = read / _CHARACTERS_A_TOKEN
    low, high = interval_of(shares) or (0.0, 0.0)
    return {
        "system": name,
        "set": corpus.name,
        "tools": len(corpus.catalog),
        "requests": len(shares),
        "recall@5": round(fmean(shares), 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "tokens": round(tokens) or None,
        "trips": _trips(corpus, told) if round(tokens) else None,
        "p50 ms": round(median(asked.ms for own in told for asked in own), 3),
    }


def _trips(corpus: Corpus, told: Sequence[Sequence[_Asked]]) -> float | None:
    """Return the round trips before a right tool that was found can be called.

    A search is one, and where a model has not read what the tool takes, asking for that another.
    """
    found: list[int] = []
    for request, own in zip(corpus.requests, told, strict=True):
        right = request.gold.union(*request.alternatives)
        named = {name for asked in own for name in asked.names[:_HITS]} & right
        ready = {name for asked in own for name in asked.ready}
        found += [1 if name in ready else 2 for name in named]
    return round(fmean(found), 3) if found else None


def _not_there(name: str, corpus: Corpus, answers: Answers) -> Row:
    """Return how often a system finds what is not there."""
    catalogs = [request.catalog or corpus.catalog for request in corpus.requests]
    hits = [
        any(answers[catalog.fingerprint, need].names for need in request.needs)
        for request, catalog in zip(corpus.requests, catalogs, strict=True)
    ]
    return {
        "system": name,
        "set": "nothing serves it",
        "tools": len(catalogs[0]),
        "requests": len(hits),
        "false hits": round(fmean(map(float, hits)), 3),
    }
