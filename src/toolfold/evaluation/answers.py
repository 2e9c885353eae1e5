"""What a model reads as the answer to a search: which right tools stand in it, and its tokens.

A request is put to `tool_search` as a model puts it, `|` between needs and all. Every name in
the answer counts, companions included. Beside it stands the plain answer: as many hits, all
with signatures and nothing behind them, whose tokens the answer is held to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from toolfold._composition import is_weak
from toolfold.answer import Answer, Hit
from toolfold.bridge import Bridge
from toolfold.evaluation.corpus import Corpus, LabelledRequest
from toolfold.evaluation.measure import recall
from toolfold.prompts import TOOL_SEARCH
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.strategy.bridge import BridgeStrategy
from toolfold.tokens import TokenCounter, estimate

__all__ = ["SHARES", "AnswerResult", "measure_answers"]

SHARES = (100, 110, 125)
"""The parts of a plain answer's tokens, in per cent, within which recall is measured."""

_FIRST = 5


class _Plain(BridgeStrategy):
    """The bridge, with signatures alone in its answers."""

    name = "plain"
    names_lead = ""


class AnswerResult(NamedTuple):
    """What the answers to one corpus hold and cost."""

    corpus: str
    ranker: str
    queries: int
    metrics: dict[str, float]
    """`answer_recall`: of all names in it. `signature_recall`: of those with signatures.
    `first_five_recall`: of the first five hits of each need. `first_hit`: how often the first
    hit of a need is right. `first_hit_recall`: which share of the right tools comes first in
    its need. `answer_tokens`, `plain_tokens`, `plain_recall`: of the answer and
    of the plain one. `recall_within_100` and so on: of the names that stand within so many
    per cent of the plain answer's tokens. `unserved_hit`: how often an answer to what no tool
    serves has hits; `unserved_close`: how often it has some that are not marked as weak."""


def measure_answers(
    corpus: Corpus,
    settings: Settings,
    *,
    count: TokenCounter = estimate,
    progress: Callable[[], None] = lambda: None,
) -> AnswerResult:
    """Ask for every request of a corpus and return what the answers hold and cost.

    Args:
        corpus: The catalog and the requests.
        settings: Which ranker, floor and budgets.
        count: Counts tokens.
        progress: Called after every request.
    """
    shared = replace(Bridge.over(corpus.catalog, settings), count=count)
    rows: list[dict[str, float]] = []
    for request in corpus.requests:
        bridge = shared
        if request.catalog is not None:
            bridge = replace(Bridge.over(request.catalog, settings), count=count)
        answer, plain = _asked(bridge, request), _asked(replace(bridge, strategy=_Plain()), request)
        rows.append(_row(request, answer, plain, count, calibrated=bridge.ranker.calibrated))
        progress()
    keys = dict.fromkeys(key for row in rows for key in row)
    metrics = {key: fmean(row[key] for row in rows if key in row) for key in keys}
    return AnswerResult(corpus.name, shared.ranker.name, len(rows), metrics)


def _asked(bridge: Bridge, request: LabelledRequest) -> Answer:
    answer = bridge.resolve(TOOL_SEARCH, {"query": request.query}, Session())
    assert isinstance(answer, Answer)
    return answer


def _row(
    request: LabelledRequest,
    answer: Answer,
    plain: Answer,
    count: TokenCounter,
    *,
    calibrated: bool,
) -> dict[str, float]:
    tokens = {"answer_tokens": float(count(answer.text)), "plain_tokens": float(count(plain.text))}
    firsts = {hit.need: hit for hit in reversed(answer.hits) if hit.shown != "companion"}
    if not request.gold:
        is_close = [not is_weak([hit], calibrated=calibrated) for hit in firsts.values()]
        found = {"unserved_hit": float(bool(firsts)), "unserved_close": float(any(is_close))}
        return {**tokens, **found}
    right = [hit for hit in firsts.values() if _share(request, [hit])]
    shares = {
        f"recall_within_{share}": _share(
            request, _standing_within(answer, count, share * tokens["plain_tokens"] / 100)
        )
        for share in SHARES
    }
    return {
        "answer_recall": _share(request, answer.hits),
        "signature_recall": _share(request, (h for h in answer.hits if h.shown == "signature")),
        "first_five_recall": _share(request, _first(answer.hits)),
        "first_hit": float(bool(right)),
        "first_hit_recall": _share(request, firsts.values()),
        "plain_recall": _share(request, plain.hits),
        **tokens,
        **shares,
    }


def _share(request: LabelledRequest, hits: Iterable[Hit]) -> float:
    names = [hit.name for hit in hits]
    return recall(request, names, len(names))


def _first(hits: Sequence[Hit]) -> list[Hit]:
    """Return the first five hits of each need."""
    seen: dict[str, int] = {}
    first: list[Hit] = []
    for hit in hits:
        seen[hit.need] = seen.get(hit.need, 0) + 1
        if hit.shown != "companion" and seen[hit.need] <= _FIRST:
            first.append(hit)
    return first


def _standing_within(answer: Answer, count: TokenCounter, tokens: float) -> list[Hit]:
    """Return the hits whose names stand within the first tokens of an answer."""
    standing: list[Hit] = []
    end = 0
    for hit in answer.hits:
        start = answer.text.find(hit.tool.shown_name, end)
        end = max(start, end) + len(hit.tool.shown_name)
        if count(answer.text[:end]) > tokens:
            break
        standing.append(hit)
    return standing
