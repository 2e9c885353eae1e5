"""What is wrong with a call's arguments, put in words.

A fault says what the schema wants, never what was given: that may be huge, and may hold a
secret. The words are bounded like the check itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from toolfold import prompts
from toolfold._bounds import cut, one_line
from toolfold._formats import EXAMPLES
from toolfold._schema_extent import Visits
from toolfold.tool import Json, is_array, is_object

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

__all__ = ["FAULTS_AT_MOST", "Fault", "Validator", "faults_of"]

FAULTS_AT_MOST = 5
"""How many faults are told of one call."""

_FAULTS_WITHIN = 1_000
"""Up to how many places faults are put in words: that takes a thousand times what it takes
to see that there are some."""

_OPTIONS_AT_MOST = 100
_BRANCHES_AT_MOST = 5
_NAMES_AT_MOST = 5
_BRANCH_LIMIT = 80
_MESSAGE_LIMIT = 240


class Fault(NamedTuple):
    """One thing that is wrong with a call's arguments."""

    path: str
    """Where, as `options.count`; empty for the arguments themselves."""

    message: str
    """What, as a short clause that names the constraint."""


class Validator(Protocol):
    """A compiled schema."""

    def is_valid(self, instance: Json) -> bool:
        """Whether a value fits."""
        ...

    def validate(self, instance: Json) -> None:
        """Raise the first error that a value has."""
        ...

    def iter_errors(self, instance: Json) -> Iterator[ValidationError]:
        """Yield all of them."""
        ...


def faults_of(
    validator: Validator, schema: Mapping[str, Json], arguments: Json, counted: Visits
) -> tuple[Fault, ...]:
    """Return what is wrong with arguments that do not fit.

    Args:
        validator: The compiled schema.
        schema: What was compiled.
        arguments: What does not fit it.
        counted: How often a check looks at them.
    """
    try:
        if counted.in_all <= _FAULTS_WITHIN:
            found = islice(validator.iter_errors(arguments), FAULTS_AT_MOST)
            return tuple(_fault(error, schema) for error in found)
        if counted.of_one_part <= _FAULTS_WITHIN:
            return _first_fault(validator, schema, arguments)
        return (Fault("", prompts.TOO_DEEP),)
    except (ValueError, TypeError, RecursionError):
        return (Fault("", prompts.TOO_DEEP),)


def _first_fault(
    validator: Validator, schema: Mapping[str, Json], arguments: Json
) -> tuple[Fault, ...]:
    from jsonschema_rs import ValidationError

    try:
        validator.validate(arguments)
    except ValidationError as error:
        return (_fault(error, schema),)
    return ()


def _fault(error: ValidationError, schema: Mapping[str, Json]) -> Fault:
    message = one_line(_message(error, schema), _MESSAGE_LIMIT)
    conditions, holds = _conditions(error, schema)
    if conditions:
        message = one_line(prompts.where(message, conditions, holds), _MESSAGE_LIMIT)
    return Fault(one_line(_path(error.instance_path), 120), message)


def _path(parts: Sequence[str | int]) -> str:
    shown = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return "".join(shown).lstrip(".")


def _message(error: ValidationError, schema: Mapping[str, Json]) -> str:
    keyword, value = error.kind.name, error.kind.value
    match keyword:
        case "required":
            return prompts.missing_argument(value)
        case "additionalProperties" | "unevaluatedProperties":
            return prompts.unknown_arguments(value)
        case "type" | "anyOf" | "oneOf" if wanted := _types(error):
            return prompts.wrong_type(error.instance, wanted)
        case "anyOf" | "oneOf":
            return _alternatives(error, schema)
        case "enum":
            return prompts.not_an_option(_options(value))
        case "not":
            return _excluded(value)
        case "format" if value in EXAMPLES:
            return prompts.wrong_format(value, EXAMPLES[value])
        case "falseSchema":
            return prompts.NOT_ALLOWED
        case _:
            limit = json.dumps(value) if isinstance(value, str | int | float) else None
            return prompts.breaks(keyword, limit)


def _options(values: Sequence[Json]) -> str:
    shown = islice(values, _OPTIONS_AT_MOST)
    return cut(", ".join(json.dumps(option, default=str) for option in shown), 200)


def _types(error: ValidationError) -> list[str]:
    """Return the types that would have done, where it is the type alone that is wrong."""
    if error.kind.name == "type":
        return list(error.kind.value)
    if not all(len(branch) == 1 for branch in error.kind.value):
        return []
    found = [
        _types(only) if only.kind.name == "type" and _is_of(only, error) else []
        for (only,) in error.kind.value
    ]
    return [kind for kinds in found for kind in kinds] if all(found) else []


def _is_of(inner: ValidationError, outer: ValidationError) -> bool:
    """Whether an error of an alternative is about the very value, not about a part of it."""
    return len(inner.instance_path) == len(outer.instance_path)


# ---- alternatives


def _alternatives(error: ValidationError, schema: Mapping[str, Json]) -> str:
    """Say what would have done instead of a value that fits none of several, or too many."""
    branches: list[list[ValidationError]] = error.kind.value
    if not all(branches):
        return _too_many(error, schema)
    shown = branches[:_BRANCHES_AT_MOST]
    more = len(branches) - len(shown)
    if all(each.kind.name == "required" and _is_of(each, error) for b in shown for each in b):
        return prompts.needs(_distinct(prompts.in_ticks(_missing(b)) for b in shown), more)
    return prompts.must_be(_distinct(_wanted(b, error) for b in shown), more)


def _too_many(error: ValidationError, schema: Mapping[str, Json]) -> str:
    branches = _at(schema, error.schema_path)
    pairs = zip(branches if is_array(branches) else [], error.kind.value, strict=False)
    needed = [_required(branch) for branch, faults in islice(pairs, 20) if not faults]
    if len(needed) > 1 and all(needed):
        return prompts.only_one_of(_distinct(map(prompts.in_ticks, needed)))
    return prompts.FITS_SEVERAL


def _wanted(branch: Sequence[ValidationError], whole: ValidationError) -> str:
    """Return what one alternative would have taken."""
    own = [error for error in branch if _is_of(error, whole)]
    by_keyword = {error.kind.name: error for error in reversed(own)}
    if kind := by_keyword.get("type"):
        return " or ".join(map(prompts.kind_named, kind.kind.value))
    if listed := by_keyword.get("enum") or by_keyword.get("const"):
        return _listed(_values(listed))
    # A part with one value tells which of several objects is meant.
    told = next((error for error in branch if error.kind.name == "const"), None)
    if told is None and (names := _missing(own)):
        return prompts.object_with(names)
    first = told or branch[0]
    path = one_line(_path(first.instance_path[len(whole.instance_path) :]), 40)
    if not path and first.kind.name == "format" and first.kind.value in EXAMPLES:
        return prompts.formed(first.kind.value, EXAMPLES[first.kind.value])
    return prompts.in_which(prompts.kind_of(whole.instance), path, _wish(first))


def _wish(error: ValidationError) -> str:
    """Return what a value, or a part of it, would have to be like."""
    keyword, value = error.kind.name, error.kind.value
    match keyword:
        case "type":
            return prompts.is_kind(value)
        case "enum" | "const":
            return prompts.is_option(_listed(_values(error)))
        case "required":
            return prompts.has(_missing([error]))
        case "additionalProperties" | "unevaluatedProperties":
            return prompts.has_not([one_line(name, 40) for name in value[:_NAMES_AT_MOST]])
        case "format" if value in EXAMPLES:
            return prompts.is_option(prompts.formed(value, EXAMPLES[value]))
        case "anyOf" | "oneOf":
            return prompts.FITS_AN_ALTERNATIVE
        case "falseSchema":
            is_of_members = error.schema_path[-1:] == ["additionalProperties"]
            return prompts.IS_EMPTY if is_of_members else prompts.IS_ALLOWED
        case _:
            return prompts.keeps(keyword, _limit(value))


def _values(error: ValidationError) -> list[Json]:
    return error.kind.value if error.kind.name == "enum" else [error.kind.value]


def _limit(value: Json) -> str | None:
    is_plain = isinstance(value, str | int | float)
    return cut(json.dumps(value), _BRANCH_LIMIT) if is_plain else None


def _listed(values: Sequence[Json]) -> str:
    return prompts.options_named(cut(_options(values), _BRANCH_LIMIT), len(values))


def _missing(errors: Sequence[ValidationError]) -> list[str]:
    found = [one_line(e.kind.value, 40) for e in errors if e.kind.name == "required"]
    return found[:_NAMES_AT_MOST]


def _required(schema: Json) -> list[str]:
    names = schema.get("required") if is_object(schema) else None
    return [one_line(str(n), 40) for n in names[:_NAMES_AT_MOST]] if is_array(names) else []


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


# ---- exclusions and conditions


def _excluded(schema: Json) -> str:
    """Say what a value may not be."""
    if is_object(schema) and len(schema) == 1:
        if names := _required(schema):
            return prompts.may_not_have(names)
        kind, enum = schema.get("type"), schema.get("enum")
        if isinstance(kind, str):
            return prompts.may_not_be(prompts.kind_named(one_line(kind, 20)))
        if is_array(enum) or "const" in schema:
            return prompts.may_not_be(_listed(enum if is_array(enum) else [schema["const"]]))
    return prompts.EXCLUDED


def _conditions(error: ValidationError, schema: Mapping[str, Json]) -> tuple[list[str], bool]:
    """Return under which conditions of an `if` a rule is one, where that is short to say."""
    path = list(error.schema_path)
    for i in range(len(path) - 1, -1, -1):
        if path[i] in ("then", "else"):
            node = _at(schema, path[:i])
            if is_object(node) and is_object(node.get("if")):
                return _said(node["if"]), path[i] == "then"
    return [], True


def _said(condition: Mapping[str, Json]) -> list[str]:
    properties = condition.get("properties")
    said: list[str] = []
    for name, inner in islice(properties.items() if is_object(properties) else (), _NAMES_AT_MOST):
        values = [inner["const"]] if is_object(inner) and "const" in inner else None
        enum = inner.get("enum") if is_object(inner) else None
        values = enum if is_array(enum) else values
        if values is None:
            return []
        said.append(f"`{one_line(name, 40)}` is {_listed(values)}")
    return said


def _at(schema: Json, path: Sequence[str | int]) -> Json:
    for part in path:
        if is_object(schema):
            schema = schema.get(str(part))
        elif is_array(schema) and isinstance(part, int) and part < len(schema):
            schema = schema[part]
        else:
            return None
    return schema
