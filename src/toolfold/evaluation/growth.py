"""How a prompt grows over a long conversation in which every turn uses another tool.

Unfolded, every turn pays the whole catalog. Folded, it pays the bridge and what searches
answered; within the budget of discoveries these stay, beyond it they shrink. Works on any
catalog: each turn asks for a tool in the words of its own description, and calls it with
the least that its schema takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from toolfold._bounds import first_sentence
from toolfold._signature import follow
from toolfold.arguments import check
from toolfold.catalog import Catalog
from toolfold.errors import CatalogError
from toolfold.evaluation.ab.arms import ARMS
from toolfold.evaluation.ab.planned import Need, TurnPlan
from toolfold.evaluation.plot import lines_svg
from toolfold.evaluation.replay import Replayed, replay
from toolfold.evaluation.trace import Trace, TraceTurn, filler
from toolfold.runtime.agent import Limits
from toolfold.tool import Json, Tool, is_array, is_mapping, is_object

__all__ = ["Growth", "growth", "growth_svg", "long_trace", "sample"]

_DEPTH = 8
_RESULT = 400
_WORDS = 160
_UNBOUNDED = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Growth:
    """The same long conversation in three ways."""

    tools: int
    budget: int
    """The tokens that discoveries may take."""

    unfolded: Replayed
    folded: Replayed
    """With the budget."""

    unshrunk: Replayed
    """Folded, without a budget."""

    @property
    def lines(self) -> dict[str, tuple[int, ...]]:
        """The tokens of each turn's largest prompt, by name."""
        return {
            "unfolded": self.unfolded.prompts,
            "folded, no budget": self.unshrunk.prompts,
            "folded": self.folded.prompts,
        }

    def as_json(self) -> dict[str, Json]:
        """Return it as a JSON object."""
        return {
            "tools": self.tools,
            "budget": self.budget,
            "unfolded": self.unfolded.as_json(),
            "folded": self.folded.as_json(),
            "folded_no_budget": self.unshrunk.as_json(),
        }


def growth(catalog: Catalog, *, turns: int = 30, budget: int | None = None) -> Growth:
    """Return how the prompt grows over so many turns, each with another tool.

    Args:
        catalog: The tools.
        turns: How many turns.
        budget: The tokens that discoveries may take; by default the runtime's own.

    Raises:
        CatalogError: The catalog has no tool that can be asked for and called.
    """
    trace = long_trace(catalog, turns)
    limits = Limits() if budget is None else Limits(discovery_tokens=budget)
    endless = replace(limits, discovery_tokens=_UNBOUNDED)
    return Growth(
        len(catalog),
        limits.discovery_tokens,
        replay(trace, ARMS["unfolded"], limits),
        replay(trace, ARMS["bridge"], limits),
        replay(trace, ARMS["bridge"], endless),
    )


def growth_svg(grown: Growth) -> str:
    """Return the chart of a growth."""
    title = f"Prompt tokens over {grown.folded.turns} tool-using turns, {grown.tools:,} tools"
    return lines_svg(title, grown.lines, logarithmic=True)


def long_trace(catalog: Catalog, turns: int) -> Trace:
    """Return a conversation in which each turn uses another tool, spread over a catalog."""
    usable = [need for tool in catalog if (need := _need(tool))]
    if not usable:
        raise CatalogError(
            "the catalog has no tool with a description that can be called",
            hint="give descriptions and parameters",
        )
    count = min(turns, len(usable))
    chosen = [usable[i * len(usable) // count] for i in range(count)]
    said = [_said(chosen[i % count]) for i in range(turns)]
    return Trace("long", catalog, (), tuple(said))


def _need(tool: Tool) -> Need | None:
    words = first_sentence(tool.description, _WORDS).replace("|", " ").strip()
    arguments = sample(tool.parameters)
    if not words or not is_object(arguments) or check(tool, arguments).faults:
        return None
    return Need(words, tool.name, arguments, again=tool.name)


def _said(need: Need) -> TraceTurn:
    return TraceTurn(
        f"Please do this for me: {need.words}", TurnPlan((need,), "Done."), (filler(_RESULT),)
    )


# ---- arguments that a schema takes


def sample(schema: Mapping[str, Json]) -> Json:
    """Return a small value that a JSON Schema takes, as far as this is easy to see."""
    return _sample(schema, schema, _DEPTH)


def _sample(schema: Json, root: Mapping[str, Json], depth: int) -> Json:
    if not is_mapping(schema) or not depth:
        return "x"
    if "$ref" in schema:
        return _sample(follow(schema, root), root, depth - 1)
    for key in ("const", "default"):
        if key in schema and schema[key] is not None:
            return schema[key]
    for key in ("enum", "examples"):
        if is_array(values := schema.get(key)) and values:
            return values[0]
    for key in ("anyOf", "oneOf", "allOf"):
        if is_array(choices := schema.get(key)) and choices:
            return _sample({**schema, key: None, **choices[0]}, root, depth - 1)
    return _of_type(schema, root, depth)


def _of_type(schema: Mapping[str, Json], root: Mapping[str, Json], depth: int) -> Json:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if is_array(kind) and kind else kind:
        case "object":
            return dict(_members(schema, root, depth))
        case "array":
            least = int(schema.get("minItems") or 0)
            return [_sample(schema.get("items", {}), root, depth - 1)] * least
        case "integer":
            return int(schema.get("minimum") or 1)
        case "number":
            return schema.get("minimum") or 1
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return _text(schema)


def _members(
    schema: Mapping[str, Json], root: Mapping[str, Json], depth: int
) -> Iterator[tuple[str, Json]]:
    properties: Mapping[str, Json] = schema.get("properties") or {}
    for name in schema.get("required") or ():
        yield str(name), _sample(properties.get(name, {}), root, depth - 1)


_FORMATS = {
    "date-time": "2026-03-02T09:00:00Z",
    "date": "2026-03-02",
    "time": "09:00:00Z",
    "email": "ada@example.org",
    "uri": "https://example.org/",
    "uuid": "12345678-1234-4234-8234-123456789abc",
}


def _text(schema: Mapping[str, Json]) -> str:
    text = _FORMATS.get(str(schema.get("format")), "example")
    return text.ljust(int(schema.get("minLength") or 0), "x")
