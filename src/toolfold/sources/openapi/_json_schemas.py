"""Schemas of a document as JSON Schema that stands by itself.

What a schema refers to comes along under `$defs`, each definition made once and shared by
all tools that need it. OpenAPI 3.0 has words of its own (`nullable`, `exclusiveMinimum` as a
boolean), which are put as JSON Schema has them; those of 3.1 stay. What says nothing to a
model (`xml`, extensions, long examples) is left out. A reference that cannot be followed, or
that lies beyond the bounds, stands for any value, and is noted.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from toolfold._json_values import Json, compact, is_array, is_mapping
from toolfold.sources.openapi.api_document import ApiDocument, DocumentFault, DocumentNode

__all__ = ["DEFINITIONS_LIMIT", "SIZE_LIMIT", "SchemaDefinitions", "Schemas"]

DEFINITIONS_LIMIT = 200
"""How many definitions one tool's schema takes along; those nearest to it are the first."""

SIZE_LIMIT = 64_000
"""How many characters of JSON they have together."""

_DEPTH = 60
_DATA_DEPTH = 20
_EXAMPLE = 60
_BELOW = "#/$defs/"

_ONE = frozenset(
    "additionalProperties unevaluatedProperties propertyNames additionalItems unevaluatedItems "
    "contains not if then else contentSchema".split()
)
_LISTS = frozenset("allOf anyOf oneOf prefixItems".split())
_MAPS = frozenset("properties patternProperties dependentSchemas $defs definitions".split())
_LEFT_OUT = frozenset(
    "xml externalDocs discriminator example examples nullable $schema $id id $anchor "
    "$dynamicAnchor $comment".split()
)
_EXPLAINED = ("enum", "const", "default", "format")
_KEY = re.compile(r"[^A-Za-z0-9_.-]+")

Direction = Literal["request", "response"]


class SchemaDefinitions(NamedTuple):
    """What a schema takes along."""

    by_key: dict[str, Json]

    is_cut: bool
    """Whether some of them stand for any value, because they are too many or too long."""


class _Definition(NamedTuple):
    schema: Json
    needs: tuple[str, ...]
    """The references in it."""

    size: int


class Schemas:
    """Makes schemas for the tools of one document.

    Args:
        document: The document.
        direction: Whether they are for what is sent or for what comes back: properties that
            only go the other way are left out.
        note: Told of each reference that stands for any value.
    """

    def __init__(
        self, document: ApiDocument, direction: Direction, note: Callable[[DocumentFault], None]
    ) -> None:
        self._document = document
        self._note = note
        self._other_way = "readOnly" if direction == "request" else "writeOnly"
        self._definitions: dict[str, _Definition] = {}
        self._references: dict[str, str] = {}
        self._targets: dict[str, DocumentNode] = {}

    def converted(self, node: DocumentNode) -> Json:
        """Return a schema; its references are `#/$defs/…`, for `definitions` to bring along."""
        return self._converted(node, 0)

    def definitions(self, schema: Json) -> SchemaDefinitions:
        """Return what a converted schema refers to, the nearest first."""
        found: dict[str, Json] = {}
        waiting = deque(self._needs(schema))
        size, is_cut = 0, False
        while waiting:
            reference = waiting.popleft()
            key = reference.removeprefix(_BELOW)
            if key in found:
                continue
            definition = self._definition(reference)
            if len(found) >= DEFINITIONS_LIMIT or size + definition.size > SIZE_LIMIT:
                found[key] = {}
                is_cut = True
                continue
            size += definition.size
            found[key] = definition.schema
            waiting.extend(definition.needs)
        return SchemaDefinitions(found, is_cut)

    def _needs(self, schema: Json) -> tuple[str, ...]:
        return tuple(text for text in _references(schema, {}) if text in self._targets)

    def _definition(self, reference: str) -> _Definition:
        known = self._definitions.get(reference)
        if known is None:
            schema = self._converted(self._targets[reference], 0)
            known = _Definition(schema, self._needs(schema), len(compact(schema)))
            self._definitions[reference] = known
        return known

    def _reference(self, node: DocumentNode) -> Json:
        """Return a reference to a definition, made when it is first asked for."""
        reference = node.at("$ref")
        try:
            target = self._document.resolved(node)
        except DocumentFault as fault:
            self._note(fault)
            return {}
        if target.value is True or target.value == {}:
            return {}
        if not is_mapping(target.value):
            self._note(DocumentFault("the reference leads to no schema", reference))
            return {}
        pointer = target.pointer
        known = self._references.get(pointer)
        if known is None:
            name = _KEY.sub("_", target.steps[-1] if target.steps else "root")[:60] or "_"
            number, known = 1, f"{_BELOW}{name}"
            while known in self._targets:
                number += 1
                known = f"{_BELOW}{name}_{number}"
            self._references[pointer] = known
            self._targets[known] = target
        return {"$ref": known}

    def _converted(self, node: DocumentNode, depth: int) -> Json:
        schema = node.value
        if not is_mapping(schema):
            return schema if isinstance(schema, bool) else {}
        if depth > _DEPTH:
            self._note(DocumentFault("it nests too deep", node))
            return {}
        if isinstance(schema.get("$ref"), str):
            made = self._reference(node)
            # Beside a reference, 3.0 means nothing by anything.
            beside = schema.keys() - {"$ref"} if self._document.minor else ()
            rest = {key: schema[key] for key in schema if key in beside}
            return (
                {**made, **self._converted(DocumentNode(rest, node.steps), depth)} if rest else made
            )
        out: dict[str, Json] = {}
        for key, value in schema.items():
            if key in _LEFT_OUT or key.startswith("x-"):
                continue
            out[key] = self._kept(key, value, node, depth)
        self._without_other_way(out, schema)
        if not self._document.minor:
            out = _from_3_0(out, schema)
        example = schema.get("example")
        if _is_telling(example) and not any(key in schema for key in _EXPLAINED):
            out["examples"] = [example]
        return out

    def _kept(self, key: str, value: Json, node: DocumentNode, depth: int) -> Json:
        below = node.at(key)
        if key in _ONE or (key == "items" and not is_array(value)):
            return self._converted(below, depth + 1)
        if (key in _LISTS or key == "items") and is_array(value):
            return [
                self._converted(DocumentNode(each, (*below.steps, str(place))), depth + 1)
                for place, each in enumerate(value)
            ]
        if key in _MAPS and is_mapping(value):
            return {name: self._converted(below.at(name), depth + 1) for name in value}
        return value if _is_shallow(value, _DATA_DEPTH) else None

    def _without_other_way(self, out: dict[str, Json], schema: Mapping[str, Json]) -> None:
        given = schema.get("properties")
        if not is_mapping(given):
            return
        hidden = {n for n, s in given.items() if is_mapping(s) and s.get(self._other_way) is True}
        if hidden:
            out["properties"] = {n: s for n, s in out["properties"].items() if n not in hidden}
            required = out.get("required")
            if is_array(required):
                out["required"] = [name for name in required if name not in hidden]


def _from_3_0(out: dict[str, Json], schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return a schema of OpenAPI 3.0 in JSON Schema's words."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        said = out.get(exclusive)
        if said is True and bound in out:
            out[exclusive] = out.pop(bound)
        elif isinstance(said, bool):
            del out[exclusive]
    if schema.get("nullable") is not True:
        return out
    kind, options = out.get("type"), out.get("enum")
    if isinstance(kind, str):
        out["type"] = [kind, "null"]
        if is_array(options) and None not in options:
            out["enum"] = [*options, None]
        return out
    composed = any(key in out for key in (*_LISTS, "not", "enum"))
    return {"anyOf": [out, {"type": "null"}]} if composed else out


def _is_telling(example: Json) -> bool:
    if isinstance(example, str):
        return 0 < len(example) <= _EXAMPLE and example.isprintable()
    return isinstance(example, int | float) and not isinstance(example, bool)


def _is_shallow(value: Json, levels: int) -> bool:
    if is_mapping(value):
        return levels > 0 and all(_is_shallow(each, levels - 1) for each in value.values())
    if is_array(value):
        return levels > 0 and all(_is_shallow(each, levels - 1) for each in value)
    return True


def _references(value: Json, found: dict[str, None]) -> dict[str, None]:
    """Return the texts of all references inside a converted schema, in order."""
    if is_mapping(value):
        text = value.get("$ref")
        if isinstance(text, str):
            found[text] = None
        for each in value.values():
            _references(each, found)
    elif is_array(value):
        for each in value:
            _references(each, found)
    return found
