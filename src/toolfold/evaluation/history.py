"""What a memory is worth: requests that were served before, and others after so many of them.

Each request of the history is searched for, and the tools that serve it are called, as a
deployment would have done; after some of them the other requests are searched for. The order of
the history is drawn several times.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from toolfold.evaluation.corpus import Corpus, LabelledRequest, load_corpus
from toolfold.evaluation.measure import Interval, interval_of, recall_of_needs
from toolfold.memory import Memory, Use
from toolfold.search import Match, index_of
from toolfold.search.choice import chosen_ranker
from toolfold.settings import Settings
from toolfold.strategy import strategy_of
from toolfold.tool import Json

__all__ = [
    "STEPS",
    "HistoryPoint",
    "HistoryResult",
    "measure_history",
    "remember_history",
    "split_history",
]

STEPS = (0, 50, 200, 1_000)
"""After how many requests the others are searched for."""

ORDERS = 5
_CONSIDERED = 100
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """What search finds after some requests of the history, over all orders."""

    uses: int
    recall_1: float | None
    recall_5: float | None
    interval_1: Interval | None
    """The 95 % interval of recall@1, by resampling the requests."""
    interval_5: Interval | None
    false_hit_rate: float | None
    """The share of requests that nothing serves and that get a hit."""

    def as_json(self) -> dict[str, Json]:
        """Return it as a JSON object."""
        values = (self.recall_1, self.recall_5, self.false_hit_rate)
        one, five, false = (None if value is None else round(value, 4) for value in values)
        return {
            "uses": self.uses,
            "recall@1": one,
            "recall@5": five,
            "recall@1_interval": self.interval_1 and [round(x, 4) for x in self.interval_1],
            "recall@5_interval": self.interval_5 and [round(x, 4) for x in self.interval_5],
            "false_hit_rate": false,
        }


@dataclass(frozen=True, slots=True)
class HistoryResult:
    """What a memory is worth on one corpus."""

    corpus: str
    tools: int
    history: int
    queries: int
    points: tuple[HistoryPoint, ...]

    def as_json(self) -> dict[str, Json]:
        """Return it as a JSON object."""
        return {
            "corpus": self.corpus,
            "tools": self.tools,
            "history": self.history,
            "queries": self.queries,
            "after": [point.as_json() for point in self.points],
        }


def split_history(corpus: Corpus, given: str, seed: int = 0) -> tuple[Corpus, Corpus]:
    """Return the requests that were served before, and those that are measured.

    Args:
        corpus: A corpus.
        given: What the history is: a file of requests; or the beginning of a split's name, of
            which the others are measured; or a share of all, as `60%`, which is drawn.
        seed: What is drawn.

    Raises:
        CatalogError: The file cannot be used.
    """
    if Path(given).is_file():
        rows = load_corpus(Path(given).parent, queries=given).requests
        return corpus._replace(requests=rows), corpus
    if given.endswith("%") and given[:-1].replace(".", "", 1).isdigit():
        order = list(corpus.requests)
        random.Random(seed).shuffle(order)
        cut = round(len(order) * float(given[:-1]) / 100)
        before, after = order[:cut], order[cut:]
    else:
        before = [r for r in corpus.requests if r.split.startswith(given)]
        after = [r for r in corpus.requests if not r.split.startswith(given)]
    return corpus._replace(requests=tuple(before)), corpus._replace(requests=tuple(after))


def measure_history(
    history: Corpus,
    corpus: Corpus,
    settings: Settings,
    *,
    steps: Sequence[int] = STEPS,
    orders: int = ORDERS,
    progress: Callable[[], None] = lambda: None,
) -> HistoryResult:
    """Search for a corpus' requests after more and more of a history.

    Args:
        history: The requests that were served before.
        corpus: The requests that are measured, over the same catalog.
        settings: Which ranker and floor.
        steps: After how many requests of the history.
        orders: How often the history's order is drawn.
        progress: Called after every request that is searched for by itself.
    """
    trial = _Trial(corpus, settings)
    names = set(corpus.catalog.names)
    served = [r for r in history.requests if r.gold and r.gold <= names]
    asked = [r for r in (*served, *corpus.requests) if r.catalog is None]
    for request in asked:
        trial.search(request)
        progress()
    steps = sorted({min(step, len(served)) for step in steps})
    sums: dict[int, list[list[_Found]]] = {step: [] for step in steps}
    for number in range(orders):
        order = list(served)
        random.Random(number).shuffle(order)
        memory = Memory()
        done = 0
        for step in steps:
            for place, request in enumerate(order[done:step]):
                trial.learn(memory, request)
                if place % _AT_ONCE == 0:
                    memory.flush()
            done = step
            memory.flush()
            if step or not number:
                sums[step].append([trial.found(memory, r) for r in corpus.requests])
        memory.close()
    points = tuple(_point(step, runs) for step, runs in sums.items())
    return HistoryResult(
        corpus.name, len(corpus.catalog), len(served), len(corpus.requests), points
    )


def remember_history(history: Corpus, settings: Settings, memory: Memory) -> int:
    """Have a memory learn a history, as if its requests had been served; return how many were.

    Args:
        history: The requests, with the tools that served them.
        settings: Which ranker.
        memory: What learns.
    """
    trial = _Trial(history, settings)
    names = set(history.catalog.names)
    served = [r for r in history.requests if r.catalog is None and r.gold and r.gold <= names]
    for place, request in enumerate(served):
        trial.search(request)
        trial.learn(memory, request)
        if place % _AT_ONCE == 0:
            memory.flush()
    memory.flush()
    return len(served)


@dataclass(frozen=True, slots=True)
class _Found:
    is_served: bool
    recall_1: float
    recall_5: float
    has_hit: bool


class _Trial:
    """A catalog with what search finds in it by itself, each need once."""

    def __init__(self, corpus: Corpus, settings: Settings) -> None:
        self._catalog = corpus.catalog
        self._floor = settings.relevance_floor
        self._index = index_of(
            corpus.catalog.tools,
            corpus.catalog.fingerprint,
            chosen_ranker(settings, strategy_of(settings).ranker),
        )
        self._matches: dict[str, Sequence[Match]] = {}

    def search(self, request: LabelledRequest) -> None:
        for need in request.needs:
            if need not in self._matches:
                self._matches[need] = self._index.search(need, _CONSIDERED)

    def learn(self, memory: Memory, request: LabelledRequest) -> None:
        for need in request.needs:
            memory.weighed(need, self._matches[need], self._catalog)
            for name in sorted(request.gold):
                memory.learn(Use(need, name, self._catalog[name].digest, principal="history"))

    def found(self, memory: Memory, request: LabelledRequest) -> _Found:
        names: list[list[str]] = []
        for need in request.needs:
            matches = memory.weighed(need, self._matches[need], self._catalog).matches
            if matches and matches[0].score >= self._floor:
                tools = self._catalog.tools
                names.append([tools[match.position].name for match in matches[:5]])
        if not request.gold:
            return _Found(False, 0.0, 0.0, bool(names))
        return _Found(
            True,
            recall_of_needs(request, names, 1),
            recall_of_needs(request, names, 5),
            bool(names),
        )


def _point(uses: int, runs: Sequence[Sequence[_Found]]) -> HistoryPoint:
    """Return the means over orders and requests; intervals are over requests."""
    each = list(zip(*runs, strict=True))
    one = _means([run.recall_1 for run in of] for of in each if of[0].is_served)
    five = _means([run.recall_5 for run in of] for of in each if of[0].is_served)
    false = _means([float(run.has_hit) for run in of] for of in each if not of[0].is_served)
    return HistoryPoint(
        uses,
        fmean(one) if one else None,
        fmean(five) if five else None,
        interval_of(one),
        interval_of(five),
        fmean(false) if false else None,
    )


def _means(values: Iterable[Sequence[float]]) -> list[float]:
    return [fmean(each) for each in values]
