"""Which arguments of a call its tool has never heard of.

Few schemas say that further arguments are forbidden, and few servers take any: a misspelt
one is dropped in silence. What a schema names, wherever it does, is known; where a schema
says that there may be more, or names nothing, everything is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import NamedTuple

from toolfold._signature import follow
from toolfold.tool import Json, is_array, is_mapping, is_object

__all__ = ["KnownArguments", "known_arguments", "unknown_arguments"]

_LOOKED_AT = 500
_COMPARED = 500
_COMPARED_LENGTH = 80
_OPEN_KEYS = ("additionalProperties", "unevaluatedProperties")
_REFERENCES = ("$dynamicRef", "$recursiveRef")
_PARTS = ("if", "then", "else")
_LISTS = ("allOf", "anyOf", "oneOf")
_CHOICES = ("anyOf", "oneOf")
_BY_NAME = ("dependentSchemas", "dependencies")
_SAYS_NOTHING = frozenset({"type", "title", "description", "examples", "default", "$comment"})


class _Open(Exception):
    """The schema takes more than it names."""


class KnownArguments(NamedTuple):
    """Which arguments a schema names."""

    names: frozenset[str]
    patterns: frozenset[str]


def known_arguments(schema: Mapping[str, Json]) -> KnownArguments | None:
    """Return which arguments a schema names; None where it may take others, too.

    A schema that names nothing is open, and so is one too branched to be walked.
    """
    try:
        parts = list(_parts(schema, schema))
    except _Open:
        return None
    names = frozenset(name for part in parts for name in _keys(part, "properties"))
    patterns = frozenset(text for part in parts for text in _keys(part, "patternProperties"))
    return KnownArguments(names, patterns) if names or patterns else None


def unknown_arguments(
    known: KnownArguments, arguments: Iterable[str], at_most: int
) -> dict[str, str | None]:
    """Return the first arguments that a schema does not name, each with the nearest that it does.

    Args:
        known: What the schema names.
        arguments: The names of what was given.
        at_most: How many to return: to compare them with all that there are takes time.
    """
    strange = [name for name in arguments if name not in known.names]
    if strange and known.patterns:
        strange = _fitting_none(known.patterns, strange)
    return {name: _nearest(name, known.names) for name in strange[:at_most]}


def _nearest(name: str, names: Iterable[str]) -> str | None:
    short = islice(sorted(known for known in names if len(known) <= _COMPARED_LENGTH), _COMPARED)
    return next(iter(get_close_matches(name[:_COMPARED_LENGTH], short, n=1)), None)


def _parts(schema: Json, root: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield every schema that says something of the same object.

    Raises:
        _Open: One of them takes more than it names, or there are too many.
    """
    waiting: list[Json] = [schema]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if not is_mapping(part) or id(part) in seen:
            continue
        seen.add(id(part))
        if len(seen) > _LOOKED_AT or _is_open(part):
            raise _Open
        yield part
        if "$ref" in part:
            target = follow(part, root)
            if not target:  # it leads nowhere here: what it names is not known
                raise _Open
            waiting.append(target)
        waiting += [part[key] for key in _PARTS if key in part]
        for key in _LISTS:
            branches = part.get(key)
            if is_array(branches):
                if key in _CHOICES and any(map(_says_nothing, branches)):
                    raise _Open
                waiting += branches
        for key in _BY_NAME:
            inner = part.get(key)
            waiting += inner.values() if is_object(inner) else ()


def _is_open(part: Mapping[str, Json]) -> bool:
    takes_more = any(key in part and part[key] is not False for key in _OPEN_KEYS)
    return takes_more or any(key in part for key in _REFERENCES)


def _says_nothing(branch: Json) -> bool:
    """Whether a choice is any object at all."""
    if not is_mapping(branch):
        return branch is True
    kind = branch.get("type", "object")
    is_for_objects = kind == "object" or (is_array(kind) and "object" in kind)
    return is_for_objects and _SAYS_NOTHING.issuperset(branch)


def _keys(part: Mapping[str, Json], key: str) -> Iterator[str]:
    inner = part.get(key)
    yield from inner if is_object(inner) else ()


def _fitting_none(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    import jsonschema_rs

    # A stranger's patterns: this engine runs in linear time, and compiles them once.
    try:
        fits = jsonschema_rs.validator_for(
            {"anyOf": [{"pattern": pattern} for pattern in sorted(patterns)]},
            pattern_options=jsonschema_rs.RegexOptions(size_limit=1_000_000),
        )
        return [name for name in names if not fits.is_valid(name)]
    except (ValueError, TypeError):
        return []
