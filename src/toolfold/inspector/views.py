"""What each view of the page shows, as JSON values. Pure: a catalog and a question in, data out.

Every text in them is a stranger's. The page shows them as text and as nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, get_args

from toolfold._json_values import compact
from toolfold._retrievability import retrievability
from toolfold._signature import signature
from toolfold.answer import Answer, Hit
from toolfold.bridge import NEEDS_AT_MOST, Bridge
from toolfold.fold import Folded, fold
from toolfold.inspector.inspected import Inspected
from toolfold.providers import SHAPES, TABLE
from toolfold.search import RANKERS
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.settings.model import StrategyName
from toolfold.strategy import strategy_of
from toolfold.tokens import estimate
from toolfold.tool import Shape
from toolfold.wire import write

__all__ = [
    "catalog_view",
    "fold_view",
    "search_view",
    "strategies_view",
    "tool_view",
    "why_not_view",
]

Values = dict[str, Any]

_QUERY_AT_MOST = 2_000
_RANKED_AT_MOST = 5_000
_TOOLS_SHOWN = 200
_SHAPE: Shape = "openai-chat"
_SHAPES: tuple[Shape, ...] = get_args(Shape)
_STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
_HOSTS = {support.api: support.hosts[0] for support in TABLE}
"""Where each provider's own API is, by its name."""


def catalog_view(inspected: Inspected) -> Values:
    """Return the sources with their tools, and what each costs."""
    costs = inspected.costs
    return {
        "title": inspected.title,
        "tools": len(inspected.catalog),
        "tokens": inspected.tokens,
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
        "apis": list(_HOSTS),
        "shapes": list(_SHAPES),
        "has_memory": inspected.memory is not None,
        "settings": {
            "ranker": inspected.settings.ranker,
            "strategy": inspected.settings.strategy,
            "floor": inspected.settings.relevance_floor,
            "limit": inspected.settings.search_default_limit,
            "most": inspected.settings.max_search_limit,
            "enabled": inspected.settings.enabled,
            "listing": inspected.settings.listing,
            "gate": inspected.settings.threshold_pct,
        },
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
        "parameters": tool.parameters,
        "wire": {
            shape: {"text": (text := compact(write(tool, shape))), "tokens": estimate(text)}
            for shape in _SHAPES
        },
        "findings": inspected.checkup.of(tool.name),
        "found": found._asdict(),
    }


def search_view(inspected: Inspected, query: str, options: Values) -> Values:
    """Return what a model is answered, and the hits with what speaks for them.

    Args:
        inspected: The catalog.
        query: The query, its needs with `|` between them.
        options: `ranker`, `floor` and `limit`, in place of the settings'; `memory` is `off`
            where what searches led to before is not to count.

    Raises:
        ConfigError: An option cannot be used.
    """
    query = query[:_QUERY_AT_MOST]
    settings = _with_options(inspected.settings, options)
    memory = None if options.get("memory") == "off" else inspected.memory
    bridge = replace(
        Bridge.over(inspected.catalog, settings), strategy=strategy_of(settings), memory=memory
    )
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
        "title": inspected.title,
        "searched": len(inspected.catalog),
        "remembers": memory is not None,
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
        options: `strategy`, `context_length`, `model`, `enabled`, `listing`, `gate`, `api` and
            `shape`, in place of the settings'.

    Raises:
        ConfigError: An option cannot be used.
    """
    folded = _fold(inspected, options)
    report = folded.report
    tools = [compact(tool) for tool in folded.tools[:_TOOLS_SHOWN]]
    return {
        "active": folded.active,
        "says": str(report),
        "report": {key: value for key, value in asdict(report).items() if key != "renamed"},
        "counts": "tokens" if strategy_of(folded.bridge.settings).gate == "tokens" else "tools",
        "shape": SHAPES.get(options["api"]) if "api" in options else options.get("shape", _SHAPE),
        "guidance": folded.guidance,
        "tools": [{"text": text, "tokens": estimate(text)} for text in tools],
        "more_tools": max(len(folded.tools) - _TOOLS_SHOWN, 0),
    }


def strategies_view(inspected: Inspected, options: Values) -> Values:
    """Return what every strategy comes to, side by side.

    Args:
        inspected: The catalog.
        options: As those of `fold_view`; their `strategy` and `api` are passed over. Where a
            provider must defer the tools itself, each provider is a row.

    Raises:
        ConfigError: An option cannot be used.
    """
    ways: list[tuple[str, str | None]] = [(name, None) for name in ("bridge", "reveal", "stub")]
    ways += [(name, api) for name in ("native", "hosted") for api in _HOSTS]
    rows: list[Values] = []
    for name, api in ways:
        own = {key: value for key, value in options.items() if key not in ("api", "shape")}
        own |= {"strategy": name, **({"api": api} if api else {})}
        report = _fold(inspected, own).report
        rows.append(
            {
                "strategy": name,
                "api": api,
                "comes_to": report.strategy if report.active else "not folded",
                "tools": report.tools_after,
                "before": report.tokens_before,
                "after": report.tokens_after,
                "reason": report.reason,
            }
        )
    return {"rows": rows}


def _fold(inspected: Inspected, options: Values) -> Folded:
    named = {"strategy": "strategy", "enabled": "enabled", "listing": "listing"}
    named["gate"] = "threshold_pct"
    given = {named[key]: value for key, value in options.items() if key in named}
    api = options.get("api")
    return fold(
        inspected.catalog,
        settings=replace(inspected.settings, **given),
        context_length=options.get("context_length"),
        model=options.get("model"),
        api=api,
        host=_HOSTS.get(api) if api else None,
        shape=None if api else options.get("shape", _SHAPE),
    )


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
