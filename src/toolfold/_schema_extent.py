"""How far a schema reaches: counted before anything is compiled or checked by it.

A schema is a stranger's. Two kilobytes of it can apply to one value a million million times
over, `allOf` of two references forty levels deep, so what a check would do is counted first,
each subschema once whatever refers to it. Counting takes time in proportion to the schema's
text; what it allows takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from toolfold._json_values import Json, is_array, is_mapping, is_object

__all__ = ["Extent", "TooFarError", "Visits", "extent_of", "too_far", "too_long", "visits"]

SUBSCHEMAS_AT_MOST = 20_000
"""How many subschemas a schema may have, each counted once."""

REFERENCES_AT_MOST = 2_000
"""How many references it may hold."""

RESOURCES_AT_MOST = 32
"""How many of its subschemas may have an identifier of their own."""

APPLIED_AT_MOST = 2_000
"""How many subschemas may apply to one and the same value."""

CHAIN_AT_MOST = 64
"""How many may stand one inside another and still mean the same value."""

PATTERNS_AT_MOST = 20_000
"""How many characters its patterns may have, all together."""

PAIRS_AT_MOST = 20_000
"""How many pairs of a subschema and a value are looked at to count a check."""

_WITHOUT_PARTS = (str, int, float, type(None))
_HERE = ("not", "if", "then", "else")
_HERE_LISTS = ("allOf", "anyOf", "oneOf")
_HERE_MAPS = ("dependentSchemas", "dependencies")
_BELOW = (
    "additionalProperties", "unevaluatedProperties", "propertyNames", "items",
    "additionalItems", "unevaluatedItems", "contains",
)  # fmt: skip
_BELOW_LISTS = ("prefixItems", "items")
_BELOW_MAPS = ("properties", "patternProperties")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


class TooFarError(Exception):
    """A schema reaches further than is followed. Its text is the clause that says how."""


class Extent(NamedTuple):
    """How far a schema reaches, and where its references lead."""

    root: Mapping[str, Json]
    targets: Mapping[str, tuple[Mapping[str, Json], ...]]
    """The subschemas that a reference may mean, by reference."""

    applied: int
    """How many of its subschemas apply to one value, at most."""

    descending: int
    """How many of those look at the parts of the value, at most."""


class Visits(NamedTuple):
    """How often a check looks at parts of a value, at most."""

    in_all: int
    of_one_part: int


class _Applied(NamedTuple):
    subschemas: int
    descending: int
    chain: int


def extent_of(schema: Mapping[str, Json]) -> Extent:
    """Count how far a schema reaches.

    Raises:
        TooFarError: Too far to be of use.
    """
    targets = _Targets(schema)
    found = _reached(schema, targets)
    counted: dict[int, _Applied | None] = {}
    most = _Applied(1, 1, 1)
    for subschema in found:
        own = _applied(subschema, targets, counted, CHAIN_AT_MOST)
        most = _Applied(
            max(most.subschemas, own.subschemas), max(most.descending, own.descending), 1
        )
    return Extent(schema, targets.known, most.subschemas, most.descending)


def visits(extent: Extent, value: Json, limit: int) -> Visits:
    """Count how often a check of `value` looks at a part of it.

    Args:
        extent: The schema's.
        value: What would be checked.
        limit: How many looks in all are allowed.

    Raises:
        TooFarError: It would be more.
    """
    size, depth = _measured(value, limit)
    # No part is looked at more often than this, and most much less.
    of_one_part = extent.applied * extent.descending ** min(depth, 64)
    if size * of_one_part <= limit:
        return Visits(size * of_one_part, of_one_part)
    return Visits(_Count(extent, limit).of(extent.root, value), of_one_part)


def _measured(value: Json, limit: int) -> tuple[int, int]:
    """Return how many parts a value has, and how deep it nests."""
    size, depth = 0, 0
    level: list[Json] = [value]
    while level:
        size += len(level)
        depth += 1
        if size > limit:
            raise TooFarError(f"its arguments have more than {limit:,} parts")
        below: list[Json] = []
        for whole in level:
            if isinstance(whole, _WITHOUT_PARTS):
                continue
            if is_array(whole):
                below += whole
            elif is_mapping(whole):
                below += whole.values()
        level = below
    return size, depth - 1


def _parts(value: Json) -> Iterator[Json]:
    if is_mapping(value):
        yield from value.values()
    elif is_array(value):
        yield from value


class _Targets:
    """Where the references of one schema lead.

    A pointer is followed from the root and from every subschema with an identifier of its
    own: which of them it means is the validator's to know, and the dearest is what counts.
    """

    def __init__(self, root: Mapping[str, Json]) -> None:
        self.known: dict[str, tuple[Mapping[str, Json], ...]] = {}
        self._resources: list[tuple[str, Mapping[str, Json]]] = [("", root)]
        self._anchors: dict[str, list[Mapping[str, Json]]] = {}
        for node in _objects(root):
            own = node.get("$id", node.get("id"))
            if isinstance(own, str) and node is not root:
                self._resources.append((own.rstrip("#"), node))
                if len(self._resources) > RESOURCES_AT_MOST:
                    raise TooFarError(f"more than {RESOURCES_AT_MOST} parts have an `$id`")
            for key in _ANCHORS:
                name = node.get(key)
                if isinstance(name, str):
                    self._anchors.setdefault(name, []).append(node)

    def of(self, reference: str) -> tuple[Mapping[str, Json], ...]:
        """Return the subschemas that a reference may mean."""
        found = self.known.get(reference)
        if found is None:
            if len(self.known) >= REFERENCES_AT_MOST:
                raise TooFarError(f"more than {REFERENCES_AT_MOST:,} references")
            found = self.known[reference] = self._found(reference)
        return found

    def _found(self, reference: str) -> tuple[Mapping[str, Json], ...]:
        address, _, fragment = reference.partition("#")
        bases = [node for _, node in self._resources]
        if address:
            # An address is resolved against others; whatever ends alike may be meant.
            last = address.rsplit("/", 1)[-1]
            bases = [node for own, node in self._resources if own.endswith(last)]
        if not fragment:
            return tuple(bases)
        if fragment.startswith("/"):
            ends = [_pointed(base, fragment) for base in bases]
            return tuple(end for end in ends if is_object(end))
        return tuple(self._anchors.get(fragment, ()))


def _objects(root: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield every object in a JSON value, itself first."""
    pending: list[Json] = [root]
    count = 0
    while pending:
        node = pending.pop()
        if is_object(node):
            count += 1
            if count > 4 * SUBSCHEMAS_AT_MOST:
                raise TooFarError(f"more than {4 * SUBSCHEMAS_AT_MOST:,} objects")
            yield node
        pending.extend(part for part in _parts(node) if is_object(part) or is_array(part))


def _pointed(root: Json, pointer: str) -> Json:
    target = root
    for part in pointer[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if is_object(target):
            target = target.get(key)
        elif is_array(target) and key.isdecimal() and len(key) < 7 and int(key) < len(target):
            target = target[int(key)]
        else:
            return None
    return target


def _reached(root: Mapping[str, Json], targets: _Targets) -> list[Mapping[str, Json]]:
    """Return every subschema that can come to be applied, each once."""
    seen = {id(root)}
    found = [root]
    patterns = 0
    for node in found:  # grows while it is walked
        for pattern in (node.get("pattern"), *_keys(node.get("patternProperties"))):
            patterns += len(pattern) if isinstance(pattern, str) else 0
        if patterns > PATTERNS_AT_MOST:
            raise TooFarError(f"its patterns have more than {PATTERNS_AT_MOST:,} characters")
        for inner in (*_here(node, targets), *_below(node)):
            if id(inner) not in seen:
                seen.add(id(inner))
                found.append(inner)
        if len(found) > SUBSCHEMAS_AT_MOST:
            raise TooFarError(f"more than {SUBSCHEMAS_AT_MOST:,} subschemas")
    return found


def _applied(
    node: Mapping[str, Json], targets: _Targets, counted: dict[int, _Applied | None], room: int
) -> _Applied:
    """Count the subschemas that apply where this one does, itself among them."""
    known = counted.get(id(node), ...)
    if known is None:
        raise TooFarError("it refers to itself without end")
    if known is not ...:
        own = known
    else:
        if room == 0:
            raise TooFarError(f"more than {CHAIN_AT_MOST} schemas, each inside the other")
        counted[id(node)] = None
        inner = [_applied(each, targets, counted, room - 1) for each in _here(node, targets)]
        # What was evaluated is found out by evaluating it again.
        times = 2 if any(key in node for key in _UNEVALUATED) else 1
        own = _Applied(
            1 + times * sum(each.subschemas for each in inner),
            (1 if any(True for _ in _below(node)) else 0)
            + times * sum(each.descending for each in inner),
            1 + max((each.chain for each in inner), default=0),
        )
        if own.subschemas > APPLIED_AT_MOST:
            raise TooFarError(f"more than {APPLIED_AT_MOST:,} subschemas apply to one value")
        counted[id(node)] = own
    if own.chain > room:
        raise TooFarError(f"more than {CHAIN_AT_MOST} schemas, each inside the other")
    return own


def _here(node: Mapping[str, Json], targets: _Targets) -> Iterator[Mapping[str, Json]]:
    """Yield the subschemas that apply to the same value."""
    for key in _REFERENCES:
        reference = node.get(key)
        if isinstance(reference, str):
            yield from targets.of(reference)
    yield from _own(node)


def _own(node: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    for key in _HERE:
        yield from _if_schema(node.get(key))
    for key in _HERE_LISTS:
        yield from _schemas(node.get(key))
    for key in _HERE_MAPS:
        inner = node.get(key)
        yield from _schemas(list(inner.values()) if is_object(inner) else None)


def _below(node: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield the subschemas that apply to parts of the value."""
    for key in _BELOW:
        yield from _if_schema(node.get(key))
    for key in _BELOW_LISTS:
        yield from _schemas(node.get(key))
    for key in _BELOW_MAPS:
        inner = node.get(key)
        yield from _schemas(list(inner.values()) if is_object(inner) else None)


def _if_schema(value: Json) -> Iterator[Mapping[str, Json]]:
    if is_object(value):
        yield value


def _schemas(values: Json) -> Iterator[Mapping[str, Json]]:
    yield from filter(is_object, values if is_array(values) else ())


def _keys(value: Json) -> Iterator[str]:
    yield from value if is_object(value) else ()


class _Count:
    """Counts a check: how often each subschema meets each part of a value."""

    def __init__(self, extent: Extent, limit: int) -> None:
        self._extent = extent
        self._limit = limit
        self._known: dict[tuple[int, int], int] = {}

    def of(self, node: Mapping[str, Json], value: Json) -> int:
        """Return how often a part of `value` is looked at where `node` applies to it."""
        key = (id(node), id(value))
        known = self._known.get(key)
        if known is not None:
            return known
        if len(self._known) >= PAIRS_AT_MOST:
            raise TooFarError("its arguments are too many for its schema")
        self._known[key] = 0
        times = 2 if any(key in node for key in _UNEVALUATED) else 1
        total = 1
        for inner in self._here(node):
            total += times * self.of(inner, value)
        for inner, part in _met(node, value):
            total += self.of(inner, part)
        if total > self._limit:
            raise TooFarError(f"a check would look at more than {self._limit:,} places")
        self._known[key] = total
        return total

    def _here(self, node: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
        for key in _REFERENCES:
            reference = node.get(key)
            if isinstance(reference, str):
                yield from self._extent.targets.get(reference, ())
        yield from _own(node)


def _met(node: Mapping[str, Json], value: Json) -> Iterator[tuple[Mapping[str, Json], Json]]:
    """Yield the subschemas that may apply to parts of a value, each with its part."""
    if is_mapping(value):
        properties = node.get("properties")
        own: Mapping[str, Json] = properties if is_object(properties) else {}
        wide = [s for k in _BELOW[:3] for s in _if_schema(node.get(k))]
        patterns = node.get("patternProperties")
        wide += _schemas(list(patterns.values()) if is_object(patterns) else None)
        for name, part in value.items():
            if is_object(own.get(name)):
                yield own[name], part
            for inner in wide:
                yield inner, part
    elif is_array(value):
        wide = [s for k in _BELOW[3:] for s in _if_schema(node.get(k))]
        listed = [s for k in _BELOW_LISTS for s in _schemas(node.get(k))]
        for i, part in enumerate(value):
            for inner in wide:
                yield inner, part
            if i < len(listed):
                yield listed[i], part


def too_long(size: int, limit: int) -> str:
    """Say to a person why a schema is not used."""
    return f"it has {size:,} bytes, more than {limit:,}"


def too_far(error: TooFarError) -> str:
    """Say to a person why a schema is not used."""
    return f"it expands too far: {error}"
