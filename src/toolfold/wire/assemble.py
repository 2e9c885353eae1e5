"""A tool list put together again from its entries.

What did not change is the caller's own object. Tools leave, or lose their parameters;
others are added at the end, in the shape of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from toolfold.tool import Json, Shape, Tool, copied, is_mapping
from toolfold.wire.read import Entry, group_key
from toolfold.wire.write import name_in, record_with_parameters, write

__all__ = ["assemble", "default_shape"]

Changes = Mapping[str, Mapping[str, Json] | None]
"""By tool name: other parameters, or None where the tool leaves."""


def default_shape(entries: Sequence[Entry]) -> Shape:
    """Return the shape of the first entry that has one; OpenAI chat where none has."""
    for entry in entries:
        if entry.shape is not None:
            return entry.shape
    return "openai-chat"


def assemble(
    entries: Sequence[Entry],
    shape: Shape,
    changes: Changes,
    added: Sequence[Tool],
    revealed: Sequence[Tool] = (),
    provided: Sequence[Json] = (),
) -> list[Json]:
    """Return the list that goes out.

    Args:
        entries: What came in. Each goes out in its own shape.
        shape: The shape in which entries without one, and added tools, are written.
        changes: What happens to which tool. Where it is empty, and nothing is added,
            every record goes out as it came in.
        added: Tools that come in at the end.
        revealed: Tools of the entries that left, and come in again behind those.
        provided: Entries of a provider's own that come in behind `added`.
    """
    untouched = not changes and not added and not provided
    out: list[Json] = []
    functions: list[Json] = []
    for entry in entries:
        tools = entry.tools
        if len(tools) == 1 and not entry.in_group and changes.get(tools[0].name, tools) is None:
            continue
        if _goes_as_it_came(entry, changes, untouched):
            out.append(entry.raw)
        elif untouched and isinstance(entry.raw, Tool) and _has_record(entry.raw, entry.shape):
            out.append(copied(entry.raw.raw or {}))
        elif is_mapping(entry.raw):
            out.extend(_rewritten(entry, changes))
        else:
            records = _records(entry, entry.shape or shape, changes)
            (functions if (entry.shape or shape) == "gemini" else out).extend(records)
    written = [write(tool, shape) for tool in added]
    (functions if shape == "gemini" else out).extend(written)
    out.extend(provided)
    if (added or provided) and shape == "anthropic":
        # The mark stays where it is when more is revealed: what comes before it does not change.
        _keep_cache_mark(entries, changes, out)
    for tool, own in _in_own_shapes(entries, revealed, shape):
        (functions if own == "gemini" else out).append(write(tool, own))
    if functions:
        _add_functions(entries, out, functions)
    return out


def _in_own_shapes(
    entries: Sequence[Entry], tools: Sequence[Tool], shape: Shape
) -> list[tuple[Tool, Shape]]:
    """Return tools of the entries, each with the shape in which it came."""
    wanted = {tool.name for tool in tools}
    shapes: dict[str, Shape] = {
        tool.name: entry.shape or shape
        for entry in (entries if wanted else ())
        for tool in entry.tools
        if tool.name in wanted
    }
    return [(tool, shapes.get(tool.name, shape)) for tool in tools]


def _has_record(tool: Tool, shape: Shape | None) -> bool:
    return tool.raw is not None and tool.shape == shape and shape != "gemini"


def _goes_as_it_came(entry: Entry, changes: Changes, untouched: bool) -> bool:
    if not entry.tools:
        return True
    shape = entry.shape
    if shape is None or not is_mapping(entry.raw):
        return False
    if untouched:
        return True
    return all(t.name not in changes and name_in(t, shape) == t.name for t in entry.tools)


def _records(entry: Entry, shape: Shape, changes: Changes) -> Iterable[dict[str, Json]]:
    for tool in entry.tools:
        parameters = changes.get(tool.name)
        if parameters is not None:
            yield record_with_parameters(tool, shape, parameters)
        elif tool.name not in changes:
            yield write(tool, shape)


def _rewritten(entry: Entry, changes: Changes) -> list[Json]:
    """Return a record whose tools changed; a Gemini group with what is left of it."""
    left = list(_records(entry, entry.shape or "plain", changes))
    key = group_key(entry.raw)
    if key is None:
        return left
    if left:
        return [{**entry.raw, key: left}]
    others = {name: value for name, value in entry.raw.items() if name != key}
    return [others] if others else []


def _add_functions(entries: Sequence[Entry], out: list[Json], functions: list[Json]) -> None:
    """Add Gemini functions: to the first group, or flat where they came flat."""
    for i, item in enumerate(out):
        key = group_key(item)
        if key is not None:
            out[i] = {**item, key: [*item[key], *functions]}
            return
    if any(entry.shape == "gemini" and entry.is_flat for entry in entries):
        out.extend(functions)
        return
    spelt = next((key for entry in entries if (key := group_key(entry.raw))), None)
    out.append({spelt or "functionDeclarations": functions})


def _keep_cache_mark(entries: Sequence[Entry], changes: Changes, out: list[Json]) -> None:
    """Move the prompt-cache mark of a tool that left to the last one that is there."""
    for entry in reversed(entries):
        left = any(changes.get(tool.name, ()) is None for tool in entry.tools)
        if left and is_mapping(entry.raw) and "cache_control" in entry.raw:
            if "cache_control" not in out[-1]:
                out[-1] = {**out[-1], "cache_control": entry.raw["cache_control"]}
            return
