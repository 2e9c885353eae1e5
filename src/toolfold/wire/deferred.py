"""Definitions that a provider keeps from the model until they are found.

A provider refuses a whole request for one definition that it does not like, and one folded
tool must not cost the others: what no provider takes at the top of a schema is left out
here. The arguments of a call are checked against the tool's own schema all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolfold.tool import Json, ProviderApi, Shape, Tool, is_array, is_object
from toolfold.wire.write import write

__all__ = ["deferred_definition", "definition", "search_entry"]

_SHAPES: Mapping[ProviderApi, tuple[Shape, str]] = {
    "anthropic-messages": ("anthropic", "input_schema"),
    "openai-responses": ("openai-responses", "parameters"),
}
_OURS_TO_SAY = ("cache_control", "defer_loading")
_NOT_AT_THE_TOP = frozenset(
    {"anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"}
)
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


def definition(tool: Tool, api: ProviderApi) -> dict[str, Json]:
    """Return the definition of a tool as an API takes it, without a mark for a cache."""
    shape, key = _SHAPES[api]
    record = write(tool, shape)
    own: Json = record.get(key)
    record[key] = _accepted(own)
    for field in _OURS_TO_SAY:
        record.pop(field, None)
    is_strict = record.get("strict") is True and record[key] == own
    if api == "openai-responses":
        # Left out, the provider makes it strict where it can: optional arguments, required.
        record["strict"] = is_strict
    elif not is_strict:
        record.pop("strict", None)
    return record


def deferred_definition(tool: Tool, api: ProviderApi) -> dict[str, Json]:
    """Return the definition of a tool that is deferred: the model sees it once it is found."""
    return {**definition(tool, api), "defer_loading": True}


def search_entry(search: Tool) -> dict[str, Json]:
    """Return the entry of OpenAI's `tool_search` that we answer, made of our search tool."""
    return {
        "type": "tool_search",
        "execution": "client",
        "description": search.description,
        "parameters": {**search.parameters, "additionalProperties": False},
    }


def _accepted(schema: Json) -> dict[str, Json]:
    """Return a schema of arguments as providers take one: an object, and plainly so."""
    given: Mapping[str, Json] = schema if is_object(schema) else {}
    own = {key: value for key, value in given.items() if key not in _NOT_AT_THE_TOP}
    properties: Json = own.get("properties")
    named = properties if is_object(properties) else {}
    kept = {name: value for name, value in named.items() if _PROPERTY.match(name)}
    required: Json = own.pop("required", None)
    if is_array(required):
        left = named.keys() - kept.keys()
        own["required"] = [n for n in required if isinstance(n, str) and n not in left]
    if own == given and kept == properties and own.get("type") == "object":
        return dict(given)
    return {**own, "type": "object", "properties": kept}
