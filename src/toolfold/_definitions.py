"""A schema without the definitions that nothing in it refers to.

Servers that are made from one large document send all of its definitions with every tool.
What a schema refers to, directly or through another definition, stays; where it cannot be
told what a reference means, everything does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolfold.tool import Json, is_array, is_object

__all__ = ["without_unused_definitions"]

_PLACES = ("$defs", "definitions")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor", "$id", "id")


class _Unclear(Exception):
    """A reference may mean any definition."""


def without_unused_definitions(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a schema with those of its definitions that it refers to: itself where all are."""
    places = [place for place in _PLACES if is_object(schema.get(place)) and schema[place]]
    if not places:
        return schema
    body = {key: value for key, value in schema.items() if key not in places}
    try:
        used = _used(body, {place: schema[place] for place in places})
    except _Unclear:
        return schema
    if sum(len(schema[place]) for place in places) == len(used):
        return schema
    kept: dict[str, Json] = {}
    for key, value in schema.items():
        if key in places:
            value = {name: inner for name, inner in value.items() if (key, name) in used}
            if not value:
                continue
        kept[key] = value
    return kept


def _used(
    body: Mapping[str, Json], definitions: Mapping[str, Mapping[str, Json]]
) -> set[tuple[str, str]]:
    """Return the definitions, by place and name, that are reached from a schema's body."""
    used: set[tuple[str, str]] = set()
    waiting: list[Json] = [body]
    while waiting:
        node = waiting.pop()
        if is_array(node):
            waiting += node
        elif is_object(node):
            waiting += node.values()
            for key in _REFERENCES:
                for meant in _meant(node.get(key), definitions):
                    if meant not in used:
                        used.add(meant)
                        waiting.append(definitions[meant[0]][meant[1]])
            if node is not body and any(isinstance(node.get(key), str) for key in _ANCHORS):
                # Within it, references may be counted from another place.
                raise _Unclear
    return used


def _meant(
    reference: Json, definitions: Mapping[str, Mapping[str, Json]]
) -> Iterator[tuple[str, str]]:
    """Yield the definition that a reference means, if it means one.

    Raises:
        _Unclear: It may mean any of them.
    """
    if not isinstance(reference, str) or reference == "#":
        return
    head, *parts = reference.split("/")
    if head != "#" or "%" in reference:
        raise _Unclear
    if parts[0] not in definitions:
        return
    if len(parts) == 1:
        raise _Unclear
    name = parts[1].replace("~1", "/").replace("~0", "~")
    if name in definitions[parts[0]]:
        yield parts[0], name
