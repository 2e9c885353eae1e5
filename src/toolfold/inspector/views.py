"""What each view of the page shows, as JSON values. Pure: a catalog and a question in, data out.

Every text in them is a stranger's. The page shows them as text and as nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

from toolfold._checkup import Finding
from toolfold._json_values import compact
from toolfold._retrievability import retrievability
from toolfold._signature import signature
from toolfold.answer import Answer, Hit
from toolfold.bridge import NEEDS_AT_MOST, Bridge
from toolfold.fold import fold
from toolfold.inspector.inspected import Inspected
from toolfold.search import RANKERS
from toolfold.serve.control.running_gateways import running_gateways
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.settings.model import StrategyName
from toolfold.strategy import strategy_of
from toolfold.tokens import estimate
from toolfold.tool import Shape
from toolfold.wire import write

__all__ = [
    "catalog_view",
    "findings_view",
    "fold_view",
    "live_view",
    "search_view",
    "tool_view",
    "why_not_view",
]

Values = dict[str, Any]

_FINDINGS_AT_MOST = 500
_QUERY_AT_MOST = 2_000
_RANKED_AT_MOST = 5_000
_SHAPES: tuple[Shape, ...] = get_args(Shape)
_STRATEGIES: tuple[str, ...] = get_args(StrategyName)


def catalog_view(inspected: Inspected) -> Values:
    """Return the sources with their tools, and what each costs."""
    costs = inspected.costs
    return {
        "title": inspected.title,
        "tools": len(inspected.catalog),
        "tokens": sum(costs.values()),
        "sources": [
            {
                "name": source,
                "tokens": sum(costs[tool.name] for tool in tools),
                "tools": [
                    {"name": t.name, "tokens": costs[t.name]}
                    for t in sorted(tools, key=lambda t: (-costs[t.name], t.name))
                ],
            }
            for source, tools in inspected.sources.items()
        ],
        "rankers": list(RANKERS),
        "strategies": list(_STRATEGIES),
        "shapes": list(_SHAPES),
        "settings": {
            "ranker": inspected.settings.ranker,
            "strategy": inspected.settings.strategy,
            "floor": inspected.settings.relevance_floor,
            "limit": inspected.settings.search_default_limit,
            "enabled": inspected.settings.enabled,
        },
    }


def findings_view(inspected: Inspected) -> Values:
    """Return what would hurt in the catalog; of thousands of tools, after seconds."""
    found = inspected.findings
    return {
        "findings": [_finding(finding) for finding in found[:_FINDINGS_AT_MOST]],
        "more": max(len(found) - _FINDINGS_AT_MOST, 0),
    }


def live_view(states: Sequence[Path]) -> Values:
    """Return how the gateways and proxies of this user stand that run now.

    Args:
        states: The folders in which they keep their state.

    Raises:
        ToolfoldError: Running ones cannot be asked on this system.
    """
    return {
        "running": [
            {"pid": each.pid, "error": each.error, **(each.report or {})}
            for each in running_gateways(states)
        ]
    }


def tool_view(inspected: Inspected, name: str) -> Values | None:
    """Return one tool: its definition in every shape, and how well it can be found."""
    tool = inspected.catalog.find(name)
    if tool is None:
        return None
    bridge = Bridge.over(inspected.catalog, inspected.settings)
    described = bridge.resolve(bridge.names.describe, {"name": tool.name}, Session())
    (found,) = retrievability([bridge.catalog[tool.name]], bridge.search)
    return {
        "name": tool.name,
        "source": tool.source,
        "description": tool.description,
        "signature": signature(tool),
        "described": described.text if isinstance(described, Answer) else "",
        "policy": tool.policy,
        "annotations": tool.annotations,
        "tokens": inspected.costs[tool.name],
        "wire": {shape: compact(write(tool, shape)) for shape in _SHAPES},
        "findings": [_finding(finding) for finding in inspected.findings_of(tool.name)],
        "found": found._asdict(),
    }


def search_view(inspected: Inspected, query: str, options: Values) -> Values:
    """Return what a model is answered, and the hits with what speaks for them.

    Args:
        inspected: The catalog.
        query: The query, its needs with `|` between them.
        options: `ranker`, `floor` and `limit`, in place of the settings'.

    Raises:
        ConfigError: An option cannot be used.
    """
    query = query[:_QUERY_AT_MOST]
    settings = _with_options(inspected.settings, options)
    bridge = replace(Bridge.over(inspected.catalog, settings), strategy=strategy_of(settings))
    limit = options.get("limit")
    asked = {"query": query, **({"limit": limit} if limit else {})}
    answer = bridge.resolve(bridge.names.search, asked, Session())
    assert isinstance(answer, Answer)
    needs = bridge.needs(query)[:NEEDS_AT_MOST]
    found = {hit.need for hit in answer.hits}
    missed = [need for need in needs if need not in found]
    without_floor = Bridge.over(inspected.catalog, replace(settings, relevance_floor=0.0))
    return {
        "query": query,
        "answer": answer.text,
        "tokens": estimate(answer.text),
        "calibrated": bridge.ranker.calibrated,
        "floor": settings.relevance_floor,
        "hits": [_hit(hit, bridge) for hit in answer.hits],
        "weak": [need for need in needs if bridge.is_weak(_of(need, answer.hits))],
        "missed": [
            {
                "need": need,
                "nearest": [_hit(hit, without_floor) for hit in without_floor.search(need, 3)],
            }
            for need in missed
        ],
    }


def why_not_view(inspected: Inspected, query: str, name: str, options: Values) -> Values | None:
    """Return where a tool stands for a query, and what stands above it.

    Raises:
        ConfigError: An option cannot be used.
    """
    settings = _with_options(inspected.settings, options)
    bridge = Bridge.over(inspected.catalog, replace(settings, relevance_floor=0.0))
    tool = bridge.catalog.find(name)
    needs = bridge.needs(query[:_QUERY_AT_MOST])[:NEEDS_AT_MOST]
    if tool is None or not needs:
        return None
    rows: list[Values] = []
    for need in needs:
        hits = bridge.search(need, min(len(bridge.catalog), _RANKED_AT_MOST))
        names = [hit.name for hit in hits]
        place = names.index(tool.name) + 1 if tool.name in names else None
        own = hits[place - 1] if place else None
        best = hits[0] if hits else None
        refused = bridge.ranker.calibrated and best and best.score < settings.relevance_floor
        rows.append(
            {
                "need": need,
                "place": place,
                "score": own.score if own else None,
                "why": bridge.explain(own) if own else "it shares nothing with these words",
                "below_floor": bool(refused),
                "floor": settings.relevance_floor,
                "above": [_hit(hit, bridge) for hit in hits[: min((place or 4) - 1, 3)]],
            }
        )
    return {"name": tool.name, "needs": rows}


def fold_view(inspected: Inspected, options: Values) -> Values:
    """Return what a model sees of the catalog, and what that costs.

    Args:
        inspected: The catalog.
        options: `strategy`, `context_length`, `model`, `enabled`, `listing` and `shape`, in place
            of the settings'.

    Raises:
        ConfigError: An option cannot be used.
    """
    names = ("strategy", "enabled", "listing")
    settings = replace(inspected.settings, **{n: options[n] for n in names if n in options})
    shape = options.get("shape", "openai-chat")
    folded = fold(
        inspected.catalog,
        settings=settings,
        context_length=options.get("context_length"),
        model=options.get("model"),
        shape=shape,
    )
    report = folded.report
    return {
        "active": folded.active,
        "says": str(report),
        "report": {key: value for key, value in asdict(report).items() if key != "renamed"},
        "guidance": folded.guidance,
        "tools": [compact(tool) for tool in folded.tools[:200]],
        "more_tools": max(len(folded.tools) - 200, 0),
    }


def _with_options(settings: Settings, options: Values) -> Settings:
    given = {"ranker": "ranker", "floor": "relevance_floor"}
    return replace(settings, **{given[k]: v for k, v in options.items() if k in given})


def _of(need: str, hits: Sequence[Hit]) -> list[Hit]:
    return [hit for hit in hits if hit.need == need and hit.shown != "companion"]


def _hit(hit: Hit, bridge: Bridge) -> Values:
    beside = hit.shown == "companion"
    why = "gives what a hit requires, or is of its source" if beside else bridge.explain(hit)
    return {
        "name": hit.name,
        "source": hit.source,
        "need": hit.need,
        "shown": hit.shown,
        "score": round(hit.score, 4),
        "signature": hit.signature,
        "summary": hit.summary,
        "why": why,
    }


def _finding(finding: Finding) -> Values:
    return {**finding._asdict(), "tools": list(finding.tools)}
