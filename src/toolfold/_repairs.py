"""Arguments that are almost right, bent towards the schema where the meaning is plain.

What fits is never touched, and what is made is checked like anything else: a repair is an
offer, and the schema decides.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from itertools import islice

from toolfold._json_values import parse
from toolfold._signature import follow
from toolfold.tool import Json, is_array, is_object

__all__ = ["parsed", "repaired"]

_DEPTH = 12
_OPTIONS_AT_MOST = 1_000
_OPTION_LIMIT = 200
_ENCODED_AT_MOST = 3
"""How many times over a text may be encoded."""

_WHOLE = re.compile(r"[+-]?\d+\Z")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")
_SEPARATORS = re.compile(r"(?<=[^\W_])[\s_.-]+(?=[^\W\d_])|(?<=[^\W\d_])[\s_.-]+(?=[^\W_])")
"""What stands between words; between two digits it may be part of a number."""


class _Whole:
    """A whole schema, with the options that were read of it."""

    __slots__ = ("options", "root")

    def __init__(self, root: Mapping[str, Json]) -> None:
        self.root = root
        self.options: dict[int, Mapping[str, str | None]] = {}


def repaired(value: Json, schema: Mapping[str, Json]) -> Json:
    """Return arguments bent towards their schema."""
    return _repair(value, schema, _Whole(schema), _DEPTH)


def parsed(text: str | bytes) -> Json | None:
    """Return the value of a JSON text, of one in a JSON text too; None where it is none.

    Raw control characters may stand in strings.
    """
    value: Json = text
    for _ in range(_ENCODED_AT_MOST):
        try:
            value = parse(value, control_characters=True)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            break
    return value


def _repair(value: Json, schema: Json, whole: _Whole, depth: int) -> Json:
    """Return `value` bent towards `schema` where that is plain; elsewhere as it is."""
    schema = follow(schema, whole.root)
    if depth == 0 or not schema:
        return value
    kinds = _kinds(schema, whole)
    if kinds and not any(_is_kind(value, kind) for kind in kinds):
        value = _convert(value, kinds)
    if isinstance(value, str):
        return _option(value, schema, whole)
    schema = _plain_branch(schema, whole)
    if is_object(value) and is_object(schema.get("properties")):
        return _repaired_object(value, schema, whole, depth)
    if is_array(value) and is_object(schema.get("items")):
        return [_repair(item, schema["items"], whole, depth - 1) for item in value]
    return value


def _repaired_object(
    value: Mapping[str, Json], schema: Mapping[str, Json], whole: _Whole, depth: int
) -> dict[str, Json]:
    properties: Mapping[str, Json] = schema["properties"]
    required: Json = schema.get("required")
    repaired: dict[str, Json] = {}
    for key, item in value.items():
        if key not in properties:
            repaired[key] = item
            continue
        kinds = _kinds(follow(properties[key], whole.root), whole)
        needed = is_array(required) and key in required
        # Null for what may be left out, where null is no value of it, means left out.
        if item is not None or needed or not kinds or "null" in kinds:
            repaired[key] = _repair(item, properties[key], whole, depth - 1)
    return repaired


def _kinds(schema: Mapping[str, Json], whole: _Whole) -> tuple[str, ...]:
    """Return the types that a schema admits, those of its plain alternatives included."""
    if "type" in schema:
        return _own_kinds(schema)
    parts = schema.get("allOf")
    if is_array(parts) and len(parts) == 1:
        return _own_kinds(follow(parts[0], whole.root))
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if not is_array(alternatives):
        return ()
    found: list[str] = []
    for alternative in alternatives:
        kinds = _own_kinds(follow(alternative, whole.root))
        if not kinds:
            return ()
        found += kinds
    return tuple(found)


def _own_kinds(schema: Mapping[str, Json]) -> tuple[str, ...]:
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return (kinds,)
    if is_array(kinds):
        return tuple(kind for kind in kinds if isinstance(kind, str))
    return ()


def _plain_branch(schema: Mapping[str, Json], whole: _Whole) -> Mapping[str, Json]:
    """Return the one alternative beside null, or the one part, where there is just one."""
    parts = schema.get("allOf")
    if is_array(parts) and len(parts) == 1 and "properties" not in schema:
        return follow(parts[0], whole.root)
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if not is_array(alternatives):
        return schema
    branches = [follow(alternative, whole.root) for alternative in alternatives]
    others = [branch for branch in branches if branch.get("type") != "null"]
    return others[0] if len(others) == 1 else schema


def _is_kind(value: Json, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return is_array(value)
        case "object":
            return is_object(value)
        case _:
            return value is None


def _convert(value: Json, kinds: tuple[str, ...]) -> Json:
    for kind in kinds:
        converted = _converted(value, kind)
        if converted is not None:
            return converted
    return value


def _converted(value: Json, kind: str) -> Json | None:
    """Return `value` as a value of `kind`, or None where that would be a guess."""
    if isinstance(value, str):
        return _from_text(value.strip(), kind) if kind != "array" else _list_from_text(value)
    if kind == "array" and value is not None:
        return [value]
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return None


def _from_text(text: str, kind: str) -> Json | None:
    if kind in ("integer", "number") and len(text) < 64 and _NUMBER.match(text):
        if _WHOLE.match(text):
            return int(text)
        number = float(text)
        if math.isinf(number):
            return None
        if number.is_integer() and abs(number) < 2**53:
            return int(number)
        return number if kind == "number" else None
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower())
    if kind == "object":
        # A blank is an object of nothing; whether that will do is for the check to say.
        if not text:
            return {}
        value = parsed(text)
        return value if is_object(value) else None
    return None


def _list_from_text(text: str) -> list[Json]:
    # A blank is a list of nothing, as it is an object of nothing.
    if not text.strip():
        return []
    value = parsed(text) if text.lstrip()[:1] in ("[", '"') else None
    return value if is_array(value) else [text]


def _option(value: str, schema: Mapping[str, Json], whole: _Whole) -> str:
    """Return the one option that differs from a text by case and separators alone, if any."""
    known = whole.options.get(id(schema))
    if known is None:
        options = _options(schema, whole)
        # Of a part of them none is certain to be the only one that is meant.
        known = _by_bare(options) if len(options) <= _OPTIONS_AT_MOST else {}
        whole.options[id(schema)] = known
    return (known.get(_bare(value)) or value) if known else value


def _by_bare(options: Iterable[Json]) -> dict[str, str | None]:
    """Return options by what they are without case and separators; None for two that are alike."""
    found: dict[str, str | None] = {}
    for option in options:
        if isinstance(option, str) and (bare := _bare(option)):
            found[bare] = option if found.get(bare, option) == option else None
    return found


def _options(schema: Mapping[str, Json], whole: _Whole) -> list[Json]:
    """Return the values that a schema lists, if listed values are all that it takes."""
    options = _listed(schema)
    if options is not None:
        return options
    for key in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(key)
        if not is_array(branches) or (key == "allOf" and len(branches) != 1):
            continue
        found: list[Json] = []
        for branch in islice(branches, _OPTIONS_AT_MOST + 1):
            inner = follow(branch, whole.root)
            own = [None] if inner.get("type") == "null" else _listed(inner)
            if own is None:
                return []
            found += own[: _OPTIONS_AT_MOST + 1]
        return found
    return []


def _listed(schema: Mapping[str, Json]) -> list[Json] | None:
    if "const" in schema:
        return [schema["const"]]
    enum = schema.get("enum")
    return enum if is_array(enum) else None


def _bare(text: str) -> str:
    return _SEPARATORS.sub("", text.strip()).casefold() if len(text) <= _OPTION_LIMIT else ""
