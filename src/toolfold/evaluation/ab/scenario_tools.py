"""The tools of a scenario: the stage's own, the bundled catalog, and as many more as wanted.

A smaller catalog is a part of the bundled one that holds what the scenario needs. A larger
one adds the same services as other places run them: plausible, distinct, and near enough
to the right tool to be taken for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache

from toolfold.demo import demo_catalog
from toolfold.errors import ConfigError
from toolfold.evaluation.ab.scenario import Scenario
from toolfold.evaluation.ab.stage import Stage
from toolfold.sources.registry import Registry
from toolfold.tool import Json, Tool

__all__ = ["CORE", "folded_tools", "registry_of"]

_PLACES = (
    "lisbon", "oslo", "osaka", "quito", "tunis", "perth", "krakow", "dakar", "lima", "cork",
)  # fmt: skip


def _schema(required: Sequence[str] = (), **properties: str) -> dict[str, Json]:
    shown = {name: {"type": "string", "description": text} for name, text in properties.items()}
    return {"type": "object", "properties": shown, "required": list(required or properties)}


CORE = (
    Tool("read_file", "Read a file of the working folder.", _schema(path="Path, as notes/a.md.")),
    Tool(
        "write_file",
        "Write a file of the working folder, replacing what is there.",
        _schema(path="Path, as notes/a.md.", content="The whole text."),
    ),
    Tool(
        "terminal",
        "Run a shell command in the working folder and return what it prints.",
        _schema(command="The command line."),
    ),
)
"""The tools that are never folded."""

_OWN = (
    Tool(
        "memory__save",
        "Save a fact to your long-term memory, which lasts beyond this conversation.",
        _schema(text="The fact, as a sentence."),
        source="memory",
    ),
    Tool(
        "memory__search",
        "Look something up in your long-term memory.",
        _schema(query="Words of the fact."),
        source="memory",
    ),
    Tool(
        "sessions__search",
        "Search the user's earlier sessions for a phrase. Returns the sessions that hold it.",
        _schema(phrase="The exact phrase."),
        source="sessions",
    ),
)


def folded_tools(count: int | None = None, wanted: Collection[str] = ()) -> tuple[Tool, ...]:
    """Return the tools that may be folded.

    Args:
        count: How many; None for the stage's own and the whole bundled catalog.
        wanted: Names that must be among them.
    """
    tools = (*_OWN, *_bundled())
    if count is None or count == len(tools):
        return tools
    if count > len(tools):
        return (*tools, *_elsewhere(count - len(tools)))
    kept = {tool.name for tool in tools if tool.name in wanted}
    others = [tool.name for tool in tools if tool.name not in kept]
    room = count - len(kept)
    if room < 0:
        raise ConfigError(
            f"{count} tools cannot hold the {len(kept)} that are wanted", hint="ask for more"
        )
    kept.update(others[i * len(others) // room] for i in range(room))
    return tuple(tool for tool in tools if tool.name in kept)


def registry_of(scenario: Scenario, stage: Stage) -> Registry:
    """Return the tools of a scenario, run by a stage."""
    registry = Registry()
    for tool in CORE:
        registry.add(tool, stage.run, core=True)
    registry.add_source(folded_tools(scenario.folded, scenario.held), stage.run)
    return registry


@cache
def _bundled() -> tuple[Tool, ...]:
    return demo_catalog().tools


def _elsewhere(count: int) -> Iterator[Tool]:
    """Yield the bundled tools as other places run them."""
    base = _bundled()
    if count > len(base) * len(_PLACES):
        most = len(_OWN) + len(base) * (1 + len(_PLACES))
        raise ConfigError(f"{count} more tools are too many", hint=f"ask for at most {most:,}")
    for i in range(count):
        place, tool = _PLACES[i // len(base)], base[i % len(base)]
        yield replace(
            tool,
            name=f"{place}_{tool.name}",
            description=f"At the {place.title()} office: {tool.description}",
            source=f"{place}_{tool.source}",
            raw=None,
            shape=None,
            size=0,
        )
