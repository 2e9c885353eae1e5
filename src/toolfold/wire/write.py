"""Tools written into a wire shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from toolfold._json_values import compact
from toolfold.tool import Json, Shape, Tool, copied, is_mapping

__all__ = ["name_in", "record_with_parameters", "renamed", "served_as", "write"]

_LIMITS_NAMES: frozenset[Shape] = frozenset({"openai-chat", "openai-responses", "anthropic"})
_SCHEMA_KEYS: dict[Shape, tuple[str, ...]] = {
    "openai-chat": ("parameters",),
    "openai-responses": ("parameters",),
    "anthropic": ("input_schema",),
    "mcp": ("inputSchema",),
    "gemini": ("parametersJsonSchema", "parameters_json_schema", "parameters"),
    "plain": ("parameters",),
}
_BOUND_TO_PARAMETERS = ("strict", "input_examples", "outputSchema")


def write(tool: Tool, shape: Shape) -> dict[str, Json]:
    """Return `tool` as a record of the given shape.

    In the shape it came in, that is the record it came in. OpenAI and Anthropic take
    `[A-Za-z0-9_-]{1,64}` as a name: another name is mapped for them. The record is the
    caller's own: changing it changes no tool.
    """
    return copied(_record(tool, shape))


def _record(tool: Tool, shape: Shape) -> dict[str, Json]:
    name = name_in(tool, shape)
    if tool.raw is not None and tool.shape == shape:
        return renamed(tool.raw, shape, name) if name != tool.name else dict(tool.raw)
    body: dict[str, Json] = {
        "name": name,
        "description": tool.description,
        _SCHEMA_KEYS[shape][0]: dict(tool.parameters),
    }
    match shape:
        case "openai-chat":
            return {"type": "function", "function": body}
        case "openai-responses":
            # Left out, the provider makes it strict where it can: optional arguments, required.
            return {"type": "function", **body, "strict": _is_strict(tool)}
        case "mcp":
            title = {"title": tool.title} if tool.title else {}
            annotations = {"annotations": dict(tool.annotations)} if tool.annotations else {}
            return {**body, **title, **annotations}
        case "plain":
            return {**body, "server": tool.source} if tool.source else body
        case _:
            return body


def _is_strict(tool: Tool) -> bool:
    """Whether a tool's owner asked for strict arguments, in whatever shape it came."""
    raw = tool.raw or {}
    own = raw.get("function") if tool.shape == "openai-chat" else raw
    return is_mapping(own) and own.get("strict") is True


def name_in(tool: Tool, shape: Shape) -> str:
    """Return the name under which `tool` goes out in a shape."""
    return tool.wire_name if shape in _LIMITS_NAMES else tool.name


def record_with_parameters(
    tool: Tool, shape: Shape, parameters: Mapping[str, Json]
) -> dict[str, Json]:
    """Return `tool` as `write` does, with other parameters.

    What is only true of its own parameters (`strict`, examples, the output's schema) goes.
    """
    record = _record(tool, shape)
    own: dict[str, Json] = record["function"] if shape == "openai-chat" else record
    gone = (*_SCHEMA_KEYS[shape][1:], *_BOUND_TO_PARAMETERS)
    body = {key: value for key, value in own.items() if key not in gone}
    body[_SCHEMA_KEYS[shape][0]] = dict(parameters)
    if shape == "openai-responses":
        body["strict"] = False
    return copied({**record, "function": body} if shape == "openai-chat" else body)


def served_as(tool: Tool, name: str) -> Tool:
    """Return a tool under another name, in its record, too; its source's name for it stays."""
    if tool.raw is None or tool.shape is None:
        return replace(tool, name=name, own_name=tool.bare_name)
    raw = renamed(tool.raw, tool.shape, name)
    return replace(tool, name=name, own_name=tool.bare_name, raw=raw, size=len(compact(raw)))


def renamed(raw: Mapping[str, Json], shape: Shape | None, name: str) -> dict[str, Json]:
    """Return a tool's record of a shape under another name."""
    if shape == "openai-chat":
        return {**raw, "function": {**raw["function"], "name": name}}
    return {**raw, "name": name}
