"""How well and how fast a ranker finds the tools that serve labelled requests.

Recall counts the gold tools among the first k hits of any need; a request that no tool
serves counts only towards the false-hit rate. Searches run as an agent's would, the index
warm.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log2
from statistics import fmean
from typing import NamedTuple

from toolfold.answer import Hit
from toolfold.bridge import Bridge
from toolfold.evaluation.corpus import Corpus, LabelledRequest
from toolfold.settings import Settings
from toolfold.tool import Json

__all__ = [
    "FLOORS",
    "FloorPoint",
    "Interval",
    "Result",
    "interval_of",
    "mean_curve",
    "measure",
    "percentile",
    "recall",
    "recall_of_needs",
]

FLOORS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The floors at which a curve of recall against false hits is drawn."""

_RESAMPLES = 300
_SEED = 20_261_115

Interval = tuple[float, float]


class FloorPoint(NamedTuple):
    """What search does at one floor."""

    floor: float
    recall: float | None
    """Recall@5 of what a tool serves."""
    false_hit_rate: float | None
    """The share of requests that nothing serves and that get a hit."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one ranker did on one corpus. Rates are from 0 to 1; None where nothing counts."""

    corpus: str
    ranker: str
    tools: int
    queries: int
    metrics: dict[str, float | None]
    """`recall@1`, `recall@5`, `recall@10`, `recall@20`, `all_gold@5`, `mrr`, `ndcg@5`,
    `false_hit_rate`."""
    interval: Interval | None
    """The 95 % interval of `recall@5`, by resampling the requests."""
    ms_p50: float
    ms_p95: float
    build_ms: float
    categories: dict[str, dict[str, float | None]] = field(
        default_factory=dict[str, "dict[str, float | None]"]
    )
    """The same metrics for the requests of each category."""
    curve: tuple[FloorPoint, ...] = ()
    """What would be at other floors; empty where the ranker has no probabilities."""

    def as_json(self) -> dict[str, Json]:
        """Return it as a JSON object."""
        return {
            "corpus": self.corpus,
            "ranker": self.ranker,
            "tools": self.tools,
            "queries": self.queries,
            **{key: _rounded(value) for key, value in self.metrics.items()},
            "recall@5_interval": self.interval and [round(x, 4) for x in self.interval],
            "ms_p50": round(self.ms_p50, 4),
            "ms_p95": round(self.ms_p95, 4),
            "build_ms": round(self.build_ms, 2),
            "categories": {
                name: {key: _rounded(value) for key, value in metrics.items()}
                for name, metrics in self.categories.items()
            },
            "curve": [[point.floor, *map(_rounded, point[1:])] for point in self.curve],
        }


class Answered(NamedTuple):
    """A request, and the hits of each of its needs with no floor."""

    request: LabelledRequest
    needs: tuple[tuple[Hit, ...], ...]

    def names(self, floor: float) -> list[list[str]]:
        """Return the names of the hits of each need that a floor leaves."""
        return [[hit.name for hit in hits] for hits in self.needs if hits and _passes(hits, floor)]


def _passes(hits: Sequence[Hit], floor: float) -> bool:
    return hits[0].score >= floor


def measure(
    corpus: Corpus,
    settings: Settings,
    *,
    limit: int = 20,
    progress: Callable[[], None] = lambda: None,
) -> Result:
    """Search for every request of a corpus and return the metrics.

    Args:
        corpus: The catalog and the requests.
        settings: Which ranker, floor and reranker.
        limit: How many hits to ask for.
        progress: Called after every request.
    """
    floor = settings.relevance_floor
    settings = replace(settings, relevance_floor=0.0)
    started = time.perf_counter()
    shared = Bridge.over(corpus.catalog, settings)
    shared.search("warm up", 1)
    build_ms = (time.perf_counter() - started) * 1e3
    answered: list[Answered] = []
    times: list[float] = []
    for request in corpus.requests:
        bridge = shared
        if request.catalog is not None:
            bridge = Bridge.over(request.catalog, settings)
            bridge.search("warm up", 1)
        started = time.perf_counter()
        hits = tuple(bridge.search(need, limit) for need in request.needs)
        times.append((time.perf_counter() - started) * 1e3)
        answered.append(Answered(request, hits))
        progress()
    calibrated = shared.ranker.calibrated
    floor = floor if calibrated else 0.0
    categories = sorted({request.category for request in corpus.requests if request.category})
    served = [item for item in answered if item.request.gold]
    return Result(
        corpus=corpus.name,
        ranker=shared.ranker.name,
        tools=len(corpus.catalog),
        queries=len(corpus.requests),
        metrics=_metrics(answered, floor),
        interval=interval_of(
            [recall_of_needs(item.request, item.names(floor), 5) for item in served]
        ),
        ms_p50=percentile(times, 50),
        ms_p95=percentile(times, 95),
        build_ms=build_ms,
        categories={
            category: _metrics([a for a in answered if a.request.category == category], floor)
            for category in categories
        },
        curve=tuple(_point(answered, level) for level in FLOORS) if calibrated else (),
    )


def mean_curve(curves: Sequence[Sequence[FloorPoint]]) -> list[FloorPoint]:
    """Return the mean of some corpora's curves: of each number, over those that have it."""
    return [
        FloorPoint(
            points[0].floor,
            _mean([p.recall for p in points if p.recall is not None]),
            _mean([p.false_hit_rate for p in points if p.false_hit_rate is not None]),
        )
        for points in zip(*(curve for curve in curves if curve), strict=True)
    ]


def recall(request: LabelledRequest, names: Sequence[str], k: int) -> float:
    """Return which share of the gold tools is among the first k of one list."""
    return recall_of_needs(request, [names], k)


def _metrics(answered: Sequence[Answered], floor: float) -> dict[str, float | None]:
    served = [(a.request, a.names(floor)) for a in answered if a.request.gold]
    unserved = [a.names(floor) for a in answered if not a.request.gold]
    return {
        **{
            f"recall@{k}": _mean([recall_of_needs(r, names, k) for r, names in served])
            for k in (1, 5, 10, 20)
        },
        "all_gold@5": _mean([float(recall_of_needs(r, names, 5) == 1) for r, names in served]),
        "mrr": _mean([_reciprocal_rank(r, names) for r, names in served]),
        "ndcg@5": _mean([_ndcg(r, names, 5) for r, names in served]),
        "false_hit_rate": _mean([float(bool(names)) for names in unserved]),
    }


def _point(answered: Sequence[Answered], floor: float) -> FloorPoint:
    served = [a for a in answered if a.request.gold]
    return FloorPoint(
        floor,
        _mean([recall_of_needs(a.request, a.names(floor), 5) for a in served]),
        _mean([float(bool(a.names(floor))) for a in answered if not a.request.gold]),
    )


def recall_of_needs(request: LabelledRequest, found: Sequence[Sequence[str]], k: int) -> float:
    """Return which share of the gold tools, or of an alternative, is among any need's first k."""
    names = {name for own in found for name in own[:k]}
    return max(len(gold & names) / len(gold) for gold in (request.gold, *request.alternatives))


def _ranks(found: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the best place of each name in any need's hits, from 1 on."""
    ranks: dict[str, int] = {}
    for names in found:
        for rank, name in enumerate(names, 1):
            ranks[name] = min(rank, ranks.get(name, rank))
    return ranks


def _reciprocal_rank(request: LabelledRequest, found: Sequence[Sequence[str]]) -> float:
    good = request.gold.union(*request.alternatives)
    return max((1 / rank for name, rank in _ranks(found).items() if name in good), default=0.0)


def _ndcg(request: LabelledRequest, found: Sequence[Sequence[str]], k: int) -> float:
    ranks = _ranks(found)
    if request.grades:
        return _share_gained(request.grades, ranks, k)
    sets = (request.gold, *request.alternatives)
    return max(_share_gained(dict.fromkeys(gold, 1.0), ranks, k) for gold in sets)


def _share_gained(gains: Mapping[str, float], ranks: Mapping[str, int], k: int) -> float:
    gained = sum(
        gain / log2(ranks[name] + 1) for name, gain in gains.items() if ranks.get(name, k + 1) <= k
    )
    best = sorted(gains.values(), reverse=True)[:k]
    return min(1.0, gained / sum(gain / log2(i + 2) for i, gain in enumerate(best)))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def interval_of(values: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of a mean, by resampling; None where there is nothing."""
    if not values:
        return None
    draw = random.Random(_SEED)
    means = sorted(fmean(draw.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    return means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES)]


def percentile(values: Sequence[float], share: int) -> float:
    """Return the value below which that share of them lies, in per cent."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)] if ordered else 0.0
