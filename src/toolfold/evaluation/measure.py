"""How well and how fast a ranker finds the tools that serve labelled requests.

Recall counts the gold tools among the first k; a request that no tool serves counts only
towards the false-hit rate. Searches run as an agent's would, the index warm.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log2
from statistics import fmean

from toolfold.bridge import Bridge
from toolfold.evaluation.corpus import Corpus, LabelledRequest
from toolfold.settings import Settings

__all__ = ["Interval", "Result", "measure", "percentile"]

_RESAMPLES = 300
_SEED = 20_261_115

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Result:
    """What one ranker did on one corpus. Rates are from 0 to 1; None where nothing counts."""

    corpus: str
    ranker: str
    tools: int
    queries: int
    metrics: dict[str, float | None]
    """`recall@1`, `recall@5`, `recall@10`, `all_gold@5`, `mrr`, `ndcg@5`, `false_hit_rate`."""
    interval: Interval | None
    """The 95 % interval of `recall@5`, by resampling the requests."""
    ms_p50: float
    ms_p95: float
    build_ms: float
    categories: dict[str, dict[str, float | None]] = field(
        default_factory=dict[str, "dict[str, float | None]"]
    )
    """The same metrics for the requests of each category."""


def measure(
    corpus: Corpus,
    settings: Settings,
    *,
    limit: int = 10,
    progress: Callable[[], None] = lambda: None,
) -> Result:
    """Search for every request of a corpus and return the metrics.

    Args:
        corpus: The catalog and the requests.
        settings: Which ranker, floor and reranker.
        limit: How many hits to ask for.
        progress: Called after every request.
    """
    started = time.perf_counter()
    bridge = Bridge.over(corpus.catalog, settings)
    bridge.search("warm up", 1)
    build_ms = (time.perf_counter() - started) * 1e3
    found: list[Sequence[str]] = []
    times: list[float] = []
    for request in corpus.requests:
        started = time.perf_counter()
        hits = bridge.search(request.query, limit)
        times.append((time.perf_counter() - started) * 1e3)
        found.append([hit.name for hit in hits])
        progress()
    answered = list(zip(corpus.requests, found, strict=True))
    categories = sorted({request.category for request in corpus.requests if request.category})
    return Result(
        corpus=corpus.name,
        ranker=bridge.ranker.name,
        tools=len(corpus.catalog),
        queries=len(corpus.requests),
        metrics=_metrics(answered),
        interval=_interval([recall(r, names, 5) for r, names in answered if r.gold]),
        ms_p50=percentile(times, 50),
        ms_p95=percentile(times, 95),
        build_ms=build_ms,
        categories={
            category: _metrics([item for item in answered if item[0].category == category])
            for category in categories
        },
    )


def _metrics(answered: Sequence[tuple[LabelledRequest, Sequence[str]]]) -> dict[str, float | None]:
    served = [(request, names) for request, names in answered if request.gold]
    unserved = [names for request, names in answered if not request.gold]
    return {
        "recall@1": _mean([recall(r, names, 1) for r, names in served]),
        "recall@5": _mean([recall(r, names, 5) for r, names in served]),
        "recall@10": _mean([recall(r, names, 10) for r, names in served]),
        "all_gold@5": _mean([float(recall(r, names, 5) == 1) for r, names in served]),
        "mrr": _mean([_reciprocal_rank(r, names) for r, names in served]),
        "ndcg@5": _mean([_ndcg(r, names, 5) for r, names in served]),
        "false_hit_rate": _mean([float(bool(names)) for names in unserved]),
    }


def recall(request: LabelledRequest, names: Sequence[str], k: int) -> float:
    """Return which share of the gold tools is among the first k."""
    return len(request.gold.intersection(names[:k])) / len(request.gold)


def _reciprocal_rank(request: LabelledRequest, names: Sequence[str]) -> float:
    return next((1 / rank for rank, name in enumerate(names, 1) if name in request.gold), 0.0)


def _ndcg(request: LabelledRequest, names: Sequence[str], k: int) -> float:
    gained = sum(1 / log2(i + 2) for i, name in enumerate(names[:k]) if name in request.gold)
    return gained / sum(1 / log2(i + 2) for i in range(min(k, len(request.gold))))


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _interval(values: Sequence[float]) -> Interval | None:
    if not values:
        return None
    draw = random.Random(_SEED)
    means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    return means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES)]


def percentile(values: Sequence[float], share: int) -> float:
    """Return the value below which that share of them lies, in per cent."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)] if ordered else 0.0
