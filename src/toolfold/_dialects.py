"""A schema as it is meant, for the one dialect that arguments are checked by.

Servers write OpenAPI's `nullable` and formats of their own into what they call JSON Schema.
The first is put in JSON Schema's words; of formats, those that are checked stay.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolfold._formats import CHECKED_FORMATS
from toolfold._signature import follow
from toolfold.tool import Json, is_array, is_object

__all__ = ["NO_OBJECT", "as_meant", "takes_objects"]

NO_OBJECT = "it takes no object, and arguments are one"
"""Says to a person why a schema is not used."""

_BY_NAME = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
_DATA = frozenset({"enum", "const", "default", "examples", "example"})
_LOOKED_AT = 200
_MARKS = (b'"nullable":true', b'"format":')
_NULL: Mapping[str, Json] = {"type": "null"}


def as_meant(schema: Mapping[str, Json], text: bytes | None = None) -> Mapping[str, Json]:
    """Return a schema that says in JSON Schema's words what it means.

    Args:
        schema: The schema.
        text: Its compact JSON, where that is known: most have nothing to be said otherwise.
    """
    if text is not None and not any(mark in text for mark in _MARKS):
        return schema
    return _meant(schema, is_root=True)


def _meant(node: Json, *, is_root: bool = False) -> Json:
    if is_array(node):
        return [_meant(each) for each in node]
    if not is_object(node):
        return node
    out: dict[str, Json] = {}
    for key, value in node.items():
        if key in _BY_NAME and is_object(value):
            out[key] = {name: _meant(inner) for name, inner in value.items()}
        elif key in _DATA:
            out[key] = value
        elif key != "format" or not isinstance(value, str) or value in CHECKED_FORMATS:
            out[key] = _meant(value)
    return _nullable(out) if node.get("nullable") is True and not is_root else out


def _nullable(schema: dict[str, Json]) -> dict[str, Json]:
    """Return a schema that takes null, too; in place where it can, so that pointers still lead."""
    kinds = schema.get("type")
    if "const" in schema or not isinstance(kinds, str | list) or _is_composed(schema):
        return {"anyOf": [schema, _NULL]}
    if isinstance(kinds, str):
        schema["type"] = kinds if kinds == "null" else [kinds, "null"]
    elif "null" not in kinds:
        schema["type"] = [*kinds, "null"]
    enum = schema.get("enum")
    if is_array(enum) and None not in enum:
        schema["enum"] = [*enum, None]
    return schema


def _is_composed(schema: Mapping[str, Json]) -> bool:
    return any(key in schema for key in ("$ref", "allOf", "anyOf", "oneOf", "not", "if"))


def takes_objects(schema: Mapping[str, Json]) -> bool:
    """Whether a schema takes any object at all; where that is hard to tell, it does.

    Arguments are an object: a tool whose schema takes none, because somebody wrote the type
    of its only parameter there, could never be called.
    """
    return _takes(schema, schema, [_LOOKED_AT])


def _takes(node: Json, root: Mapping[str, Json], left: list[int]) -> bool:
    left[0] -= 1
    if left[0] < 0 or not is_object(node):
        return node is not False
    if "$ref" in node:
        node = follow(node, root)
    kinds = node.get("type")
    if isinstance(kinds, str) and kinds != "object":
        return False
    if is_array(kinds) and kinds and "object" not in kinds:
        return False
    if "const" in node and not is_object(node["const"]):
        return False
    enum = node.get("enum")
    if is_array(enum) and not any(map(is_object, enum)):
        return False
    return _takes_branches(node, root, left)


def _takes_branches(node: Mapping[str, Json], root: Mapping[str, Json], left: list[int]) -> bool:
    parts = node.get("allOf")
    if is_array(parts) and not all(_takes(part, root, left) for part in parts):
        return False
    for key in ("anyOf", "oneOf"):
        branches = node.get(key)
        if not is_array(branches) or not branches:
            continue
        if not any(_takes(branch, root, left) for branch in branches):
            return False
    return node.get("not") is not True
