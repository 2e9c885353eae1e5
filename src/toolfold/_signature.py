"""One line that says how a tool is called.

    create_issue(owner: string, title: string, state?: "open"|"closed", labels?: string[])

Local references are followed, enums shown, and everything is bounded: a schema from a
stranger may be recursive, wrong or huge.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

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

    __slots__ = ("left", "schema")

    def __init__(self, schema: Mapping[str, Json]) -> None:
        self.schema = schema
        self.left = _TYPES_AT_MOST


def _signature(tool: Tool, limit: int) -> str:
    parameters = tool.parameters
    root = _Root(parameters)
    schema = follow(parameters, parameters)
    properties = schema.get("properties")
    if not is_object(properties):
        properties = {}
    required = _names(schema.get("required"))
    # Required first: where the line is cut, what the model cannot do without still stands.
    ordered = [name for name in properties if name in required]
    ordered += [name for name in properties if name not in required]
    parts: list[str] = []
    room = limit - len(tool.shown_name) - 2
    for i, name in enumerate(ordered):
        part = _parameter(name, properties[name], name in required, root, _DEPTH)
        if i >= _PARAMETERS_AT_MOST or len(part) + 2 > room:
            parts.append("…")
            break
        parts.append(part)
        room -= len(part) + 2
    return f"{tool.shown_name}({', '.join(parts)})"


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
            return _union(_type(branch, root, depth - 1) for branch in branches[:_ENUM_AT_MOST])
    all_of = schema.get("allOf")
    if is_array(all_of) and len(all_of) == 1:
        return _type(all_of[0], root, depth - 1)
    kinds = schema.get("type")
    if is_array(kinds):
        return _union(_kind(str(kind), schema, root, depth) for kind in kinds[:_ENUM_AT_MOST])
    if isinstance(kinds, str):
        return _kind(kinds, schema, root, depth)
    return _kind("object", schema, root, depth) if "properties" in schema else "any"


def _kind(kind: str, schema: Mapping[str, Json], root: _Root, depth: int) -> str:
    if kind == "array":
        items = schema.get("items")
        inner = _type(items, root, depth - 1) if is_object(items) else "any"
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    properties = schema.get("properties")
    if kind == "object" and is_object(properties) and properties and depth > 0:
        required = _names(schema.get("required"))
        fields = [
            _parameter(name, value, name in required, root, depth - 1)
            for name, value in list(properties.items())[:_FIELDS_AT_MOST]
        ]
        more = ["…"] if len(properties) > _FIELDS_AT_MOST else []
        return "{" + ", ".join(fields + more) + "}"
    return _word(kind, 32)


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
    return cut(json.dumps(value, ensure_ascii=False), 42)


def _quoted(text: str, limit: int) -> str:
    # Cut until it fits with what is escaped in it: a quotation that does not end hides the rest.
    while len(quoted := json.dumps(text, ensure_ascii=False)) > limit + 2:
        text = text[: -(len(quoted) - limit - 2) // 2 - 1].rstrip("…") + "…"
    return quoted


def _names(required: Json) -> frozenset[str]:
    names = required if is_array(required) else []
    return frozenset(name for name in names if isinstance(name, str))
