"""Arguments for a tool, made of its schema: something for each parameter that it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_DEPTH = 6
_FORMATS = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "uri": "https://example.org/a?b=c",
    "email": "me@example.org",
    "byte": "aGk=",
    "ipv4": "192.0.2.1",
}


def arguments_of(schema: Mapping[str, Any], *, every: bool) -> dict[str, Any]:
    """Return arguments that fit a tool's schema; `every`: the optional ones, too."""
    return _object(schema, schema.get("$defs", {}), 0, every=every)


def _object(schema: Mapping[str, Any], defs: Any, depth: int, *, every: bool) -> dict[str, Any]:
    required, properties = schema.get("required", []), schema.get("properties", {})
    chosen = [name for name in properties if name in required or (every and depth < 2)]
    # A form has no way to say that an object is there and empty.
    if not chosen and depth:
        chosen = list(properties)[:1]
    return {name: _value(properties[name], defs, depth + 1, every=every) for name in chosen}


def _value(schema: Any, defs: Any, depth: int, *, every: bool) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return "x"
    if "$ref" in schema:
        return _value(defs[schema["$ref"].rpartition("/")[2]], defs, depth, every=every)
    for given in (schema.get("const"), schema.get("default"), *schema.get("enum", ())):
        if given is not None:
            return given
    for key in ("allOf", "oneOf", "anyOf"):
        if schema.get(key):
            parts = [_value(each, defs, depth, every=every) for each in schema[key]]
            merged = {k: v for part in parts if isinstance(part, dict) for k, v in part.items()}
            return merged if key == "allOf" and merged else parts[0]
    return _of_kind(schema, defs, depth, every=every)


def _of_kind(schema: Mapping[str, Any], defs: Any, depth: int, *, every: bool) -> Any:
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kind = kinds if isinstance(kinds, str) else next(k for k in kinds if k != "null")
    if kind == "object":
        return _object(schema, defs, depth, every=every)
    if kind == "array":
        count = max(schema.get("minItems", 0), 2 if schema.get("maxItems", 2) > 1 else 1)
        made = _value(schema.get("items", {}), defs, depth + 1, every=every)
        return [made] if schema.get("uniqueItems") else [made] * count
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return max(least, 1) if least <= 1 <= schema.get("maximum", 1) else least
    return True if kind == "boolean" else _text(schema)


def _text(schema: Mapping[str, Any]) -> str:
    if schema.get("contentEncoding") == "base64":
        return "aGVsbG8="
    known = _FORMATS.get(schema.get("format", ""))
    if known:
        return known
    pattern = schema.get("pattern")
    for example in (*schema.get("examples", ()), "a b&c/d", "abc", "1", "a" * 32, "0" * 40):
        if isinstance(example, str) and _fits(example, schema, pattern):
            return example
    return "a" * max(schema.get("minLength", 3), 1)


def _fits(text: str, schema: Mapping[str, Any], pattern: str | None) -> bool:
    if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 10_000):
        return False
    try:
        return pattern is None or re.search(pattern, text) is not None
    except re.error:
        return True
