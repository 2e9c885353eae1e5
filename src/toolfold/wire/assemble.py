"""A tool list put together again from its entries.

What did not change is the caller's own object. Tools leave, or lose their parameters;
others are added at the end, in the shape of the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolfold.tool import Json, Shape, Tool
from toolfold.wire.read import GROUP_KEYS, Entry
from toolfold.wire.write import entry_record, name_in, record_with_parameters, write

__all__ = ["assemble", "default_shape"]

Changes = Mapping[str, Mapping[str, Json] | None]
"""By tool name: other parameters, or None where the tool leaves."""


def default_shape(entries: Sequence[Entry]) -> Shape:
    """Return the shape of the first entry that has one; OpenAI chat where none has."""
    return next((entry.shape for entry in entries if entry.shape is not None), "openai-chat")


def assemble(
    entries: Sequence[Entry], shape: Shape, changes: Changes, added: Sequence[Tool]
) -> list[Json]:
    """Return the list that goes out.

    Args:
        entries: What came in.
        shape: The shape in which tools without one, and added tools, are written. An entry
            that came in another shape is written in this one.
        changes: What happens to which tool. Where it is empty, and nothing is added,
            every record goes out as it came in.
        added: Tools that come in at the end.
    """
    untouched = not changes and not added
    out: list[Json] = []
    for entry in entries:
        tools = entry.tools
        if len(tools) == 1 and changes.get(tools[0].name, tools) is None:
            continue
        out.extend(_written(entry, shape, changes, untouched))
    out.extend(_additions(out, shape, added))
    if added and shape == "anthropic":
        _keep_cache_mark(entries, changes, out)
    return out


def _written(entry: Entry, shape: Shape, changes: Changes, untouched: bool) -> list[Json]:
    if not entry.tools:
        return [entry.raw]
    is_record = isinstance(entry.raw, Mapping) and entry.shape in (shape, None)
    same = not any(tool.name in changes for tool in entry.tools)
    if is_record and same and (untouched or all(_legal(t, shape) for t in entry.tools)):
        return [entry.raw]
    if entry.shape == "gemini" == shape and isinstance(entry.raw, Mapping):
        return _regrouped(entry, changes)
    return [
        _as_entry(record, shape)
        for tool in entry.tools
        if (record := _record(tool, shape, changes)) is not None
    ]


def _legal(tool: Tool, shape: Shape) -> bool:
    return name_in(tool, shape) == tool.name


def _record(tool: Tool, shape: Shape, changes: Changes) -> dict[str, Json] | None:
    if tool.name not in changes:
        return write(tool, shape)
    parameters = changes[tool.name]
    return None if parameters is None else record_with_parameters(tool, shape, parameters)


def _as_entry(record: dict[str, Json], shape: Shape) -> dict[str, Json]:
    return {"functionDeclarations": [record]} if shape == "gemini" else record


def _regrouped(entry: Entry, changes: Changes) -> list[Json]:
    """Return a Gemini tool object with what is left of its functions."""
    records = [_record(tool, "gemini", changes) for tool in entry.tools]
    left = [record for record in records if record is not None]
    key = next((key for key in GROUP_KEYS if key in entry.raw), None)
    if key is None:
        return list(left)
    others = {name: value for name, value in entry.raw.items() if name != key}
    if not left:
        return [others] if others else []
    return [{**entry.raw, key: left}]


def _additions(out: list[Json], shape: Shape, added: Sequence[Tool]) -> list[Json]:
    if shape != "gemini" or not added:
        return [entry_record(tool, shape) for tool in added]
    # Gemini wants its functions in one group where it can have it.
    for i, item in enumerate(out):
        key = next((k for k in GROUP_KEYS if isinstance(item, Mapping) and k in item), None)
        if key is not None:
            records = [*item[key], *(write(tool, shape) for tool in added)]
            out[i] = {**item, key: records}
            return []
    return [{"functionDeclarations": [write(tool, shape) for tool in added]}]


def _keep_cache_mark(entries: Sequence[Entry], changes: Changes, out: list[Json]) -> None:
    """Move the prompt-cache mark of a tool that left to the last one that is there."""
    for entry in reversed(entries):
        left = any(changes.get(tool.name, ()) is None for tool in entry.tools)
        if left and isinstance(entry.raw, Mapping) and "cache_control" in entry.raw:
            if "cache_control" not in out[-1]:
                out[-1] = {**out[-1], "cache_control": entry.raw["cache_control"]}
            return
