"""A model's arguments: read, checked against the tool's schema, repaired where harmless.

The schema comes from a stranger: references are local, nothing is fetched, patterns run
in linear time, what a check would do is counted before it is done, and a schema that cannot
be used does not block the call.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from toolfold import prompts
from toolfold._bounds import cut, one_line
from toolfold._json_values import fast_bytes
from toolfold._memo import Memo
from toolfold._schema_extent import (
    Extent,
    TooFarError,
    Visits,
    extent_of,
    too_far,
    too_long,
    visits,
)
from toolfold._signature import follow
from toolfold._unknown_arguments import KnownArguments, known_arguments, unknown_arguments
from toolfold.tool import Json, Tool, is_array, is_mapping, is_object

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

__all__ = [
    "Checked",
    "Fault",
    "check",
    "compiles_at_once",
    "read_arguments",
    "schema_problem",
    "unknown_faults",
]

SCHEMA_LIMIT = 1_000_000
"""The longest schema that arguments are checked against, in bytes of compact JSON."""

VISITS_AT_MOST = 200_000
"""How many places a check may look at; arguments that would take more pass unchecked."""

_FAULTS_WITHIN = 1_000
"""Up to how many places faults are put in words: that takes a thousand times what it takes
to see that there are some."""

_LARGE = 50_000
_DEPTH = 12
_FAULTS_AT_MOST = 5
_OPTIONS_AT_MOST = 100
_WHOLE = re.compile(r"[+-]?\d+\Z")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")


class Fault(NamedTuple):
    """One thing that is wrong with a call's arguments."""

    path: str
    """Where, as `options.count`; empty for the arguments themselves."""

    message: str
    """What, as a short clause that names the constraint."""


class Checked(NamedTuple):
    """Arguments after the check: usable if there are no faults."""

    arguments: dict[str, Json]
    faults: tuple[Fault, ...] = ()


class _Validator(Protocol):
    def is_valid(self, instance: Json) -> bool: ...
    def validate(self, instance: Json) -> None: ...
    def iter_errors(self, instance: Json) -> Iterator[ValidationError]: ...


class _Compiled(NamedTuple):
    validator: _Validator | None
    problem: str | None
    extent: Extent | None = None
    size: int = 0
    """The length of the schema's text."""

    known: KnownArguments | None = None
    """Which arguments it names; None where it may take others, too."""


_VALIDATORS: Memo[bytes, _Compiled] = Memo(
    4096, room=4 * 1024 * 1024, size=lambda compiled: compiled.size
)


def read_arguments(arguments: Json) -> dict[str, Json] | str:
    """Return arguments as an object, or the clause that says why they are none.

    An object, the JSON text of one (raw control characters in strings included), and
    blank or absent for no arguments.
    """
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    if isinstance(arguments, str | bytes):
        try:
            arguments = json.loads(arguments, strict=False)
        except (ValueError, RecursionError) as error:
            known = isinstance(error, json.JSONDecodeError)
            return prompts.not_json(error.msg, error.pos) if known else prompts.not_json(None, None)
        if arguments is None:
            return {}
    if is_mapping(arguments):
        return dict(arguments)
    return prompts.no_object(arguments)


def check(tool: Tool, arguments: dict[str, Json]) -> Checked:
    """Check arguments against the tool's schema, repairing what is harmless.

    A number in a string, a single value for a list, JSON text for an object or a list,
    `"true"` for true, null for what may be left out: what a schema asks for plainly and a
    model wrote almost so.
    """
    compiled = _compiled(tool)
    if compiled.validator is None or compiled.extent is None:
        return Checked(arguments)
    try:
        visits(compiled.extent, arguments, VISITS_AT_MOST)
        if _is_valid(compiled.validator, arguments):
            return Checked(arguments)
        repaired = _repair(arguments, tool.parameters, tool.parameters, _DEPTH)
        found = visits(compiled.extent, repaired, VISITS_AT_MOST)
    except (TooFarError, RecursionError):
        return Checked(arguments)
    if is_object(repaired) and _is_valid(compiled.validator, repaired):
        return Checked(repaired)
    return Checked(arguments, _faults(compiled.validator, repaired, found))


def unknown_faults(tool: Tool, arguments: Mapping[str, Json]) -> tuple[Fault, ...]:
    """Return a fault for each argument that the tool's schema does not name.

    A schema that cannot be used names nothing to hold a call to.
    """
    compiled = _compiled(tool)
    if compiled.validator is None or compiled.known is None:
        return ()
    strange = unknown_arguments(compiled.known, arguments)
    if not strange:
        return ()
    said = (prompts.unknown_argument(cut(name, 80), near) for name, near in strange.items())
    return tuple(Fault("", one_line(text, 240)) for text in islice(said, _FAULTS_AT_MOST))


def schema_problem(tool: Tool) -> str | None:
    """Return why the tool's schema cannot be used, or None."""
    return _compiled(tool).problem


def compiles_at_once(tool: Tool) -> bool:
    """Whether the tool's schema is compiled already, or small enough not to matter."""
    if 0 < tool.size <= _LARGE:
        return True
    text = fast_bytes(tool.parameters)
    return text is not None and (len(text) <= _LARGE or _VALIDATORS.get(_key(text)) is not None)


def _key(text: bytes) -> bytes:
    return hashlib.sha1(text, usedforsecurity=False).digest()


def _compiled(tool: Tool) -> _Compiled:
    text = fast_bytes(tool.parameters)
    if text is None:
        return _compile(tool.parameters)
    if len(text) > SCHEMA_LIMIT:
        return _Compiled(None, too_long(len(text), SCHEMA_LIMIT))
    return _VALIDATORS.get_or(_key(text), lambda: _compile(tool.parameters, len(text)))


def _compile(schema: Mapping[str, Json], size: int = 0) -> _Compiled:
    import jsonschema_rs

    try:
        extent = extent_of(schema)
        validator = jsonschema_rs.validator_for(
            dict(schema),
            offline=True,
            validate_formats=False,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=1_000_000),
        )
    except TooFarError as error:
        return _Compiled(None, too_far(error))
    except (ValueError, TypeError, RecursionError) as error:
        return _Compiled(None, one_line(str(error).split("\n", 1)[0], 200))
    return _Compiled(validator, None, extent, size, known_arguments(schema))


def _is_valid(validator: _Validator, arguments: Json) -> bool:
    # A value no JSON can hold (an integer of a thousand digits) is the tool's to judge.
    try:
        return validator.is_valid(arguments)
    except (ValueError, TypeError):
        return True


def _faults(validator: _Validator, arguments: Json, counted: Visits) -> tuple[Fault, ...]:
    try:
        if counted.in_all <= _FAULTS_WITHIN:
            found = islice(validator.iter_errors(arguments), _FAULTS_AT_MOST)
            return tuple(_fault(error) for error in found)
        if counted.of_one_part <= _FAULTS_WITHIN:
            return _first_fault(validator, arguments)
        return (Fault("", prompts.TOO_DEEP),)
    except (ValueError, TypeError, RecursionError):
        return (Fault("", prompts.TOO_DEEP),)


def _first_fault(validator: _Validator, arguments: Json) -> tuple[Fault, ...]:
    from jsonschema_rs import ValidationError

    try:
        validator.validate(arguments)
    except ValidationError as error:
        return (_fault(error),)
    return ()


def _fault(error: ValidationError) -> Fault:
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
    ).lstrip(".")
    # The instance is left out of the message: it may be huge, and may hold a secret.
    keyword, value = error.kind.name, error.kind.value
    match keyword:
        case "required":
            message = prompts.missing_argument(value)
        case "additionalProperties" | "unevaluatedProperties":
            message = prompts.unknown_arguments(value)
        case "type" | "anyOf" | "oneOf" if wanted := _types(error):
            message = prompts.wrong_type(error.instance, wanted)
        case "enum":
            shown = islice(value, _OPTIONS_AT_MOST)
            options = ", ".join(json.dumps(option, default=str) for option in shown)
            message = prompts.not_an_option(cut(options, 200))
        case "falseSchema":
            message = prompts.NOT_ALLOWED
        case _:
            limit = json.dumps(value) if isinstance(value, str | int | float) else None
            message = prompts.breaks(keyword, limit)
    return Fault(one_line(path, 120), one_line(message, 240))


def _types(error: ValidationError) -> list[str]:
    """Return the types that would have done, where it is the type alone that is wrong."""
    if error.kind.name == "type":
        return list(error.kind.value)
    if not all(len(branch) == 1 for branch in error.kind.value):
        return []
    found = [_types(only) if only.kind.name == "type" else [] for (only,) in error.kind.value]
    return [kind for kinds in found for kind in kinds] if all(found) else []


def _repair(value: Json, schema: Json, root: Mapping[str, Json], depth: int) -> Json:
    """Return `value` bent towards `schema` where that is plain; elsewhere as it is."""
    schema = follow(schema, root)
    if depth == 0 or not schema:
        return value
    kinds = _kinds(schema, root)
    if kinds and not any(_is_kind(value, kind) for kind in kinds):
        value = _convert(value, kinds)
    schema = _plain_branch(schema, root)
    if is_object(value) and is_object(schema.get("properties")):
        return _repaired_object(value, schema, root, depth)
    if is_array(value) and is_object(schema.get("items")):
        return [_repair(item, schema["items"], root, depth - 1) for item in value]
    return value


def _repaired_object(
    value: Mapping[str, Json], schema: Mapping[str, Json], root: Mapping[str, Json], depth: int
) -> dict[str, Json]:
    properties: Mapping[str, Json] = schema["properties"]
    required: Json = schema.get("required")
    repaired: dict[str, Json] = {}
    for key, item in value.items():
        if key not in properties:
            repaired[key] = item
            continue
        kinds = _kinds(follow(properties[key], root), root)
        needed = is_array(required) and key in required
        # Null for what may be left out, where null is no value of it, means left out.
        if item is not None or needed or not kinds or "null" in kinds:
            repaired[key] = _repair(item, properties[key], root, depth - 1)
    return repaired


def _kinds(schema: Mapping[str, Json], root: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the types that a schema admits, those of its plain alternatives included."""
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return (kinds,)
    if is_array(kinds):
        return tuple(kind for kind in kinds if isinstance(kind, str))
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if not is_array(alternatives):
        return ()
    found: list[str] = []
    for alternative in alternatives:
        kind = follow(alternative, root).get("type")
        if not isinstance(kind, str):
            return ()
        found.append(kind)
    return tuple(found)


def _plain_branch(schema: Mapping[str, Json], root: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the one alternative beside null, where there is just one; else the schema."""
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if not is_array(alternatives):
        return schema
    branches = [follow(alternative, root) for alternative in alternatives]
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
        if number.is_integer() and abs(number) < 2**53:
            return int(number)
        return number if kind == "number" else None
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower())
    if kind == "object":
        parsed = _parsed(text)
        return parsed if is_object(parsed) else None
    return None


def _list_from_text(text: str) -> list[Json]:
    parsed = _parsed(text) if text.lstrip().startswith("[") else None
    return parsed if is_array(parsed) else [text]


def _parsed(text: str) -> Json | None:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
