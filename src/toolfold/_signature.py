"""One line that says how a tool is called.

    create_issue(owner: string, title: string, state?: "open"|"closed", labels?: string[])
    dim(room: uuid, brightness: 0..100, until?: date-time, scenes?: {*: string})

Local references are followed; enums, ranges, formats and maps are shown; and everything is
bounded: a schema from a stranger may be recursive, wrong or huge.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from toolfold._bounds import cut, one_line
from toolfold._json_values import fast_bytes
from toolfold._memo import Memo
from toolfold.tool import Json, Tool, is_array, is_object

__all__ = ["follow", "signature"]

_LINE_LIMIT = 600
_PARAMETERS_AT_MOST = 24
_DEPTH = 3
_ENUM_AT_MOST = 8
_FIELDS_AT_MOST = 8
_REFERENCES_AT_MOST = 8
_TYPES_AT_MOST = 1_000
"""How many types are looked at for one line; a line of 600 characters holds far fewer."""

_ENTRY_BYTES = 400
"""What an entry of the memo takes beside the letters of its line, nearly."""

_SIGNATURES: Memo[tuple[bytes, int], str] = Memo(
    16_384, room=4 * 1024 * 1024, size=lambda line: len(line) + _ENTRY_BYTES
)
_WORD = re.compile(r"[\w.$@/*+~-]+…?\Z")
"""Names that stay as they are: none of the signs that a signature is made of is in them."""

_PLACE = re.compile(r"[0-9]{1,6}\Z")
_RANGE = re.compile(r"(?:integer |number )?(?:[<>]|-?[0-9][0-9.e+-]*\.\.)")
_FAR = 2**31 - 1
"""A bound from here on says how wide a number is, not what it may be."""

_FORMATS = frozenset(
    {
        "date-time", "date", "time", "duration", "uuid", "email", "idn-email", "hostname",
        "idn-hostname", "ipv4", "ipv6", "uri", "url", "uri-reference", "iri", "iri-reference",
        "uri-template", "json", "json-pointer", "relative-json-pointer", "regex",
    }
)  # fmt: skip


def signature(tool: Tool, limit: int = _LINE_LIMIT) -> str:
    """Return the call signature of `tool`, at most about `limit` characters long."""
    # The digest of a tool will not do as a key: it passes over the order of parameters.
    text = fast_bytes(tool.parameters)
    if text is None:
        return _signature(tool, limit)
    digest = hashlib.sha1(tool.name.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    digest.update(b"\0" + text)
    return _SIGNATURES.get_or((digest.digest(), limit), lambda: _signature(tool, limit))


class _Root:
    """A whole schema, and how many more of its types are looked at."""

    __slots__ = ("_required", "left", "schema")

    def __init__(self, schema: Mapping[str, Json]) -> None:
        self.schema = schema
        self.left = _TYPES_AT_MOST
        self._required: dict[int, frozenset[str]] = {}

    def required(self, schema: Mapping[str, Json]) -> frozenset[str]:
        """Return what a part of the schema requires; a long list is read once."""
        listed = schema.get("required")
        if not is_array(listed):
            return frozenset()
        known = self._required.get(id(listed))
        if known is None:
            known = frozenset(name for name in listed if isinstance(name, str))
            self._required[id(listed)] = known
        return known


class _Members(NamedTuple):
    """What an object may have, wherever its schema says so."""

    properties: Mapping[str, Json]
    required: frozenset[str]


class _Bound(NamedTuple):
    value: int | float
    is_exclusive: bool


def _signature(tool: Tool, limit: int) -> str:
    root = _Root(tool.parameters)
    properties, required = _members(tool.parameters, root, _DEPTH)
    # Required first: where the line is cut, what the model cannot do without still stands.
    ordered = [name for name in properties if name in required]
    ordered += [name for name in properties if name not in required]
    parts: list[str] = []
    room = limit - len(tool.shown_name) - 3
    for i, name in enumerate([*ordered, None]):
        if name is None:
            rest = _rest(follow(tool.parameters, tool.parameters), root, _DEPTH)
            if rest is None:
                break
            part = rest
        else:
            part = _parameter(name, properties[name], name in required, root, _DEPTH)
        if i >= _PARAMETERS_AT_MOST or len(part) + 2 > room:
            parts.append("…")
            break
        parts.append(part)
        room -= len(part) + 2
    return f"{tool.shown_name}({', '.join(parts)})"


def _members(schema: Json, root: _Root, depth: int, at_most: int | None = None) -> _Members:
    """Return the members of an object, those of its parts and alternatives among them.

    Required is what every alternative asks for. With `at_most`, so many of each are enough.
    """
    root.left -= 1
    schema = follow(schema, root.schema)
    properties = schema.get("properties")
    required = root.required(schema)
    found: dict[str, Json] = {}
    if is_object(properties):
        found.update(islice(properties.items(), at_most))
    if depth == 0 or root.left < 0:
        return _Members(found, required)
    for key in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(key)
        if not is_array(branches) or not branches:
            continue
        each = [_members(b, root, depth - 1, at_most) for b in branches[:_ENUM_AT_MOST]]
        for own, _ in each:
            for name, inner in own.items():
                found.setdefault(name, inner)
        asked = each[0].required
        for _, own_required in each[1:]:
            asked = asked | own_required if key == "allOf" else asked & own_required
        required |= asked
    return _Members(found, required)


def follow(schema: Json, root: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the schema that local references lead to; an empty one where they lead nowhere."""
    for _ in range(_REFERENCES_AT_MOST):
        if not is_object(schema):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = _target(reference, root)
    return {}


def _target(reference: str, root: Mapping[str, Json]) -> Json:
    if reference != "#" and not reference.startswith("#/"):
        return {}
    target: Json = root
    for part in reference[2:].split("/") if len(reference) > 1 else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if is_object(target):
            target = target.get(key)
        elif is_array(target) and _PLACE.match(key) and int(key) < len(target):
            target = target[int(key)]
        else:
            return {}
    return target


def _parameter(name: str, schema: Json, required: bool, root: _Root, depth: int) -> str:
    return f"{_word(name, 64)}{'' if required else '?'}: {_type(schema, root, depth)}"


def _type(schema: Json, root: _Root, depth: int) -> str:
    """Return the type that a schema describes, as a short text."""
    root.left -= 1
    if schema is True or depth < 0 or root.left < 0:
        return "any"
    schema = follow(schema, root.schema)
    if "const" in schema:
        return _literal(schema["const"])
    enum = schema.get("enum")
    if is_array(enum) and enum:
        shown = [_literal(value) for value in enum[:_ENUM_AT_MOST]]
        return "|".join(shown + (["…"] if len(enum) > _ENUM_AT_MOST else []))
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if is_array(branches) and branches:
            union = _union(_type(branch, root, depth - 1) for branch in branches[:_ENUM_AT_MOST])
            if union != "any":
                return union
    kinds = schema.get("type")
    if is_array(kinds):
        return _union(_kind(str(kind), schema, root, depth) for kind in kinds[:_ENUM_AT_MOST])
    if isinstance(kinds, str):
        return _kind(kinds, schema, root, depth)
    return _untyped(schema, root, depth)


def _untyped(schema: Mapping[str, Json], root: _Root, depth: int) -> str:
    all_of = schema.get("allOf")
    if is_array(all_of) and len(all_of) == 1 and "properties" not in schema:
        return _type(all_of[0], root, depth - 1)
    if "properties" in schema:
        return _object(schema, root, depth)
    shown = _object(schema, root, depth) if is_array(all_of) else "object"
    return shown if shown != "object" else _format(schema) or "any"


def _kind(kind: str, schema: Mapping[str, Json], root: _Root, depth: int) -> str:
    match kind:
        case "array":
            items = schema.get("items")
            inner = _type(items, root, depth - 1) if is_object(items) else "any"
            return f"({inner})[]" if "|" in inner or _RANGE.match(inner) else f"{inner}[]"
        case "object":
            return _object(schema, root, depth)
        case "string":
            return _format(schema) or kind
        case "integer" | "number":
            return _number(kind, schema)
        case _:
            return _word(kind, 32)


def _object(schema: Mapping[str, Json], root: _Root, depth: int) -> str:
    if depth <= 0:
        return "object"
    properties, required = _members(schema, root, depth, _FIELDS_AT_MOST + 1)
    fields = [
        _parameter(name, value, name in required, root, depth - 1)
        for name, value in list(properties.items())[:_FIELDS_AT_MOST]
    ]
    if len(properties) > _FIELDS_AT_MOST:
        fields.append("…")
    rest = _rest(schema, root, depth)
    if rest is not None:
        fields.append(rest)
    return "{" + ", ".join(fields) + "}" if fields else "object"


def _rest(schema: Mapping[str, Json], root: _Root, depth: int) -> str | None:
    """Return what further members are like, where the schema says more than that there may be."""
    patterns = schema.get("patternProperties")
    schemas = list(patterns.values())[:_ENUM_AT_MOST] if is_object(patterns) else []
    further = schema.get("additionalProperties")
    if is_object(further):
        schemas.append(further)
    types = [_type(each, root, depth - 1) for each in schemas]
    return None if not types or "any" in types else f"*: {_union(types)}"


def _format(schema: Mapping[str, Json]) -> str | None:
    form = schema.get("format")
    return form if isinstance(form, str) and form in _FORMATS else None


def _number(kind: str, schema: Mapping[str, Json]) -> str:
    """Return a number's type with its range: `0..100`, `integer >=1`, `number >0..1`."""
    low = _bound(schema.get("minimum"), schema.get("exclusiveMinimum"), 1)
    high = _bound(schema.get("maximum"), schema.get("exclusiveMaximum"), -1)
    if kind == "integer":
        low, high = _whole(low, 1), _whole(high, -1)
    if low is None and high is None:
        return kind
    if high is None:
        shown = _edge(">", low, "=")
    elif low is None:
        shown = _edge("<", high, "=")
    else:
        shown = f"{_edge('>', low)}..{_edge('<', high)}"
    return shown if kind == "integer" and ".." in shown else f"{kind} {shown}"


def _bound(limit: Json, exclusive: Json, towards: int) -> _Bound | None:
    """Return the tighter of two bounds; `towards` is 1 for the lower side, else -1."""
    bounds: list[_Bound] = []
    if _is_near(limit):
        # In the older drafts, true says that the bound beside it is exclusive.
        bounds.append(_Bound(limit, exclusive is True))
    if _is_near(exclusive):
        bounds.append(_Bound(exclusive, True))
    return max(bounds, key=lambda bound: (towards * bound.value, bound.is_exclusive), default=None)


def _is_near(value: Json) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < _FAR  # NaN is not


def _whole(bound: _Bound | None, towards: int) -> _Bound | None:
    """Return the bound of an integer: the first one inside."""
    if bound is None:
        return None
    edge = math.ceil(bound.value) if towards > 0 else math.floor(bound.value)
    outside = bound.is_exclusive and edge == bound.value
    return _Bound(edge + towards if outside else edge, False)


def _edge(sign: str, bound: _Bound | None, equal: str | None = None) -> str:
    if bound is None:
        return ""
    value = int(bound.value) if bound.value == int(bound.value) else bound.value
    if bound.is_exclusive:
        return f"{sign}{value}"
    return f"{value}" if equal is None else f"{sign}{equal}{value}"


def _union(types: Iterable[str]) -> str:
    """Join types, leaving null out: whether a parameter may be absent says its mark."""
    distinct = [text for text in dict.fromkeys(types) if text != "null"]
    return "|".join(distinct) or "null"


def _word(name: str, limit: int) -> str:
    """Return a stranger's name as one word: in quotes where it could pass for more of the line."""
    text = one_line(name, limit)
    return text if _WORD.match(text) else _quoted(text, limit)


def _literal(value: Json) -> str:
    if isinstance(value, str):
        return _quoted(one_line(value, 40), 40)
    text = ""
    for piece in json.JSONEncoder(ensure_ascii=False).iterencode(value):
        text += piece
        if len(text) > 42:  # it may be as long as the schema
            break
    return cut(text, 42)


def _quoted(text: str, limit: int) -> str:
    # Cut until it fits with what is escaped in it: a quotation that does not end hides the rest.
    while len(quoted := json.dumps(text, ensure_ascii=False)) > limit + 2:
        text = text[: -(len(quoted) - limit - 2) // 2 - 1].rstrip("…") + "…"
    return quoted
