"""Definitions and lists of tools as texts that stay inside a token budget.

What is left out is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from toolfold import prompts
from toolfold._bounds import cut, visible
from toolfold._definitions import without_unused_definitions
from toolfold._json_values import compact
from toolfold._signature import signature
from toolfold.catalog import Catalog
from toolfold.tokens import TokenCounter
from toolfold.tool import Json, Tool, is_array, is_object

__all__ = ["Listing", "definition", "describe_text", "fitting", "listing_text", "names_text"]

_SPARE_TOKENS = 48
_DEPTH = 64
_TEXT_LIMITS = (2_000, 400, 80, 0)
_SCHEMA_TEXTS = frozenset({"description", "title", "examples", "$comment", "markdownDescription"})
_NAMED_SCHEMAS = frozenset({"properties", "$defs", "definitions", "patternProperties"})


def names_text(folded: Catalog, budget: int, count: TokenCounter) -> str:
    """Return the names of the folded tools, as many as the budget takes."""
    names: list[str] = []
    room = budget - _SPARE_TOKENS
    for tool in folded:
        room -= count(f"{tool.shown_name}, ")
        if room < 0:
            break
        names.append(tool.shown_name)
    return prompts.names_there_are(names, len(folded))


def fitting(lines: Sequence[str], budget: int, count: TokenCounter) -> list[str]:
    """Return the lines that fit into a budget, and how many do not."""
    kept: list[str] = []
    room = budget - _SPARE_TOKENS
    for line in lines:
        room -= count(line) + 1
        if room < 0:
            return [*kept, prompts.names_left_out(len(lines) - len(kept))]
        kept.append(line)
    return kept


def describe_text(
    tools: Sequence[Tool],
    *,
    folded: Catalog,
    budget: int,
    count: TokenCounter,
    left_out: int = 0,
) -> str:
    """Return the full definitions of tools, each shortened only where it must be."""
    lines: list[str] = []
    room = budget - _SPARE_TOKENS
    for i, tool in enumerate(tools):
        # What earlier tools left over is shared by those still to come.
        line = _shown(tool, room // (len(tools) - i), count)
        if tool.name not in folded:
            line = f"{line}\n{prompts.call_directly(tool.shown_name)}"
        room -= count(line) + 1
        if lines and room < 0:
            left_out += len(tools) - i
            break
        lines.append(line)
    if left_out:
        lines.append(prompts.names_left_out(left_out))
    return "\n".join(lines)


def _shown(tool: Tool, budget: int, count: TokenCounter) -> str:
    whole = definition(tool, None)
    if count(whole) <= budget:
        return whole
    for limit in _TEXT_LIMITS:
        shorter = f"{definition(tool, limit)} {prompts.description_cut()}"
        if count(shorter) <= budget:
            return shorter
    return prompts.schema_cut(signature(tool))


def definition(tool: Tool, text_limit: int | None) -> str:
    """Return name, description and parameters as one line of JSON.

    Args:
        tool: The tool.
        text_limit: The length to which texts are cut, those that validate nothing
            included; None leaves them whole.
    """
    description = visible(tool.description)
    parameters: Json = _visible(without_unused_definitions(tool.parameters), _DEPTH)
    if text_limit is not None:
        description = cut(description, max(text_limit, 80))
        parameters = shortened(parameters, text_limit)
    return compact({"name": tool.shown_name, "description": description, "parameters": parameters})


def _visible(value: Json, depth: int) -> Json:
    """Return a schema with its texts made visible; what nests too deep admits anything."""
    if isinstance(value, str):
        return visible(value)
    if depth == 0:
        return {} if is_object(value) or is_array(value) else value
    if is_object(value):
        return {visible(key): _visible(item, depth - 1) for key, item in value.items()}
    return [_visible(item, depth - 1) for item in value] if is_array(value) else value


def shortened(schema: Json, limit: int) -> Json:
    """Return a schema that validates the same, its texts cut to `limit` or left out at 0."""
    if is_array(schema):
        return [shortened(item, limit) for item in schema]
    if not is_object(schema):
        return schema
    out: dict[str, Json] = {}
    for key, value in schema.items():
        if key in _NAMED_SCHEMAS and is_object(value):
            out[key] = {name: shortened(item, limit) for name, item in value.items()}
        elif key in _SCHEMA_TEXTS:
            if limit and key == "description" and isinstance(value, str):
                out[key] = cut(value, limit)
        elif key in ("enum", "const", "default"):
            out[key] = value
        else:
            out[key] = shortened(value, limit)
    return out


class Listing(NamedTuple):
    """What the search tool's description lists."""

    text: str
    has_names: bool = False
    """Whether tools are named in it."""


def listing_text(
    folded: Catalog, catalog: Catalog, listing: str, budget: int, count: TokenCounter
) -> Listing:
    """Return what the search tool's description lists, sorted, within a budget.

    Names by source while they fit; then counts alone, for the largest sources first.

    Args:
        folded: The tools to list.
        catalog: Every tool of the scope: a short name must mean one of them only.
        listing: `off`, `sources` or `names`.
        budget: How many tokens the list may take.
        count: Counts them.
    """
    if listing == "off":
        return Listing(prompts.FOLDED)
    if listing == "sources":
        return Listing(_counted(folded, budget, count))
    by_source: dict[str, list[str]] = {}
    prefixed = False
    for tool in folded:
        short = tool.bare_name
        if catalog.find(short) is not tool:
            # Short all the same, where it can be called with the source's name before it.
            with_source = catalog.find(prompts.with_source(tool.source or "", short)) is tool
            prefixed, short = prefixed or with_source, short if with_source else tool.name
        short = short if short.isprintable() else tool.wire_name
        by_source.setdefault(tool.source or "", []).append(short)
    lines = {
        source: prompts.listed_names(source, sorted(names)) for source, names in by_source.items()
    }
    collapsed: set[str] = set()
    for source in [None, *sorted(by_source, key=lambda s: (-len(by_source[s]), s))]:
        if source is not None:
            collapsed.add(source)
        text = _names_by_source(lines, by_source, collapsed, prefixed=prefixed)
        if count(text) <= budget:
            return Listing(text, len(collapsed) < len(by_source))
    return Listing(_counted(folded, budget, count))


def _names_by_source(
    lines: Mapping[str, str],
    by_source: Mapping[str, Sequence[str]],
    collapsed: set[str],
    *,
    prefixed: bool,
) -> str:
    listed = [
        prompts.listed_source(source, len(by_source[source]))
        if source in collapsed
        else lines[source]
        for source in sorted(lines)
    ]
    return prompts.listed_by_source(listed, prefixed=prefixed)


def _counted(folded: Catalog, budget: int, count: TokenCounter) -> str:
    """Return the sources with their counts, as many as the budget takes."""
    sources = folded.sources
    if not sources:
        return prompts.FOLDED
    others = len(folded) - sum(sources.values())
    shown = len(sources)
    while shown:
        text = prompts.of_sources(sources, shown, others)
        if count(text) <= budget:
            return text
        shown //= 2
    return prompts.of_many_sources(len(sources))
