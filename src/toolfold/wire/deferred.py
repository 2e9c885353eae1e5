"""Definitions that a provider keeps from the model until they are found.

A provider refuses a whole request for one definition that it does not like, and one folded
tool must not cost the others: what no provider takes at the top of a schema is left out
here, and so is what nobody sees in the texts of strangers. The arguments of a call are checked
against the tool's own schema all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolfold._bounds import visible
from toolfold._json_values import compact
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
    record = _visible(write(tool, shape))
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


def _visible(record: dict[str, Json]) -> dict[str, Json]:
    """Return a definition without the characters that nobody sees, as a describe shows it."""
    text = compact(record)
    # JSON writes a control character as six that can be seen.
    return record if visible(text) == text and "\\u00" not in text else _all_visible(record)


def _all_visible(value: Json, depth: int = 64) -> Json:
    """Return a value with its texts made visible; what nests too deep admits anything."""
    if isinstance(value, str):
        return visible(value)
    if not depth and (is_object(value) or is_array(value)):
        return {}
    if is_object(value):
        return {visible(key): _all_visible(item, depth - 1) for key, item in value.items()}
    return [_all_visible(item, depth - 1) for item in value] if is_array(value) else value


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
