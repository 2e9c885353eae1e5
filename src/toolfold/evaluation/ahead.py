"""What is gained by naming tools behind the user's message, before the model asks.

Each request is one that a user puts to a host. Without a note, a model searches for it in the
same words, and once more where a right tool is not shown with its signature. With a note that
names every tool that is needed it does neither, and one that names some of them may save the
second. Tokens are those of notes and of answers, each counted once: what a longer conversation
costs on later turns comes on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from statistics import fmean
from typing import Literal, NamedTuple

from toolfold import prompts
from toolfold.answer import Answer, Hit
from toolfold.catalog import Catalog
from toolfold.evaluation.corpus import Corpus, LabelledRequest
from toolfold.evaluation.measure import recall
from toolfold.fold import Folded, fold
from toolfold.runtime._prefetch import prefetched
from toolfold.settings import Settings
from toolfold.tokens import TokenCounter, estimate

__all__ = ["PREFETCHES", "PrefetchResult", "measure_prefetch"]

PREFETCHES: tuple[Literal["sure", "always"], ...] = ("sure", "always")
"""What is measured."""


class PrefetchResult(NamedTuple):
    """What notes did for one corpus."""

    corpus: str
    prefetch: str
    queries: int
    metrics: dict[str, float]
    """Of requests that a tool serves, `spoken`: the share that gets a note; `right`: how many of
    these notes name a right tool; `complete`: the share of all whose note names every tool that
    is needed; `note_tokens`: of a note; `trips_before`, `trips`: the extra round trips of a
    request without and with notes; `tokens_before`, `tokens`: what is read for them. Of those
    that none serves, `unserved_spoken`: the share that gets a note."""


def measure_prefetch(
    corpus: Corpus,
    settings: Settings,
    prefetch: Literal["sure", "always"],
    *,
    count: TokenCounter = estimate,
    progress: Callable[[], None] = lambda: None,
) -> PrefetchResult:
    """Say every request of a corpus to a host, and return what the notes hold, cost and save.

    Args:
        corpus: The catalog and the requests.
        settings: Which ranker and floor.
        prefetch: When a note is made.
        count: Counts tokens.
        progress: Called after every request.
    """
    settings = replace(settings, enabled="on", strategy="bridge", prefetch=prefetch)
    shared = _folded(corpus.catalog, settings)
    rows: list[dict[str, float]] = []
    for request in corpus.requests:
        folded = shared
        if request.catalog is not None:
            folded = _folded(request.catalog, settings)
        rows.append(_row(folded, request, count))
        progress()
    keys = dict.fromkeys(key for row in rows for key in row)
    metrics = {key: fmean(row[key] for row in rows if key in row) for key in keys}
    return PrefetchResult(corpus.name, prefetch, len(rows), metrics)


def _folded(catalog: Catalog, settings: Settings) -> Folded:
    if any(name in catalog for name in prompts.bridge_names(settings.bridge_prefix).all):
        settings = replace(settings, bridge_prefix="toolfold")
    return fold(list(catalog), settings=settings)


def _row(folded: Folded, request: LabelledRequest, count: TokenCounter) -> dict[str, float]:
    note, hits = prefetched(folded, request.query, is_later=request.later)
    if not request.gold:
        return {"unserved_spoken": float(bool(note))}
    tokens, share = float(count(note)) if note else 0.0, _share(request, hits)
    answer = folded.resolve(folded.bridge.names.search, {"query": request.query})
    assert isinstance(answer, Answer)
    shown = [hit for hit in answer.hits if hit.shown == "signature"]
    searched, is_complete = float(count(answer.text)), bool(note) and share == 1
    row = {
        "spoken": float(bool(note)),
        "complete": float(is_complete),
        "trips_before": 1.0 + (_share(request, shown) < 1),
        "trips": 0.0 if is_complete else 1.0 + (_share(request, (*hits, *shown)) < 1),
        "tokens_before": searched,
        "tokens": tokens + (0.0 if is_complete else searched),
    }
    return {**row, "right": float(share > 0), "note_tokens": tokens} if note else row


def _share(request: LabelledRequest, hits: Iterable[Hit]) -> float:
    names = [hit.name for hit in hits]
    return recall(request, names, len(names))
