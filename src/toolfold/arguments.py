"""A model's arguments: read, checked against the tool's schema, repaired where harmless.

The schema comes from a stranger: references are local, nothing is fetched, patterns run
in linear time, what a check would do is counted before it is done, and a schema that cannot
be used does not block the call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from itertools import chain, islice
from typing import NamedTuple

from toolfold import prompts
from toolfold._bounds import cut, one_line
from toolfold._dialects import NO_OBJECT, as_meant, takes_objects
from toolfold._faults import FAULTS_AT_MOST, Fault, Validator, faults_of
from toolfold._formats import CHECKED_FORMATS
from toolfold._json_values import fast_bytes, parse
from toolfold._memo import Memo
from toolfold._repairs import parsed, repaired
from toolfold._schema_extent import Extent, TooFarError, extent_of, too_far, too_long, visits
from toolfold._unknown_arguments import KnownArguments, known_arguments, unknown_arguments
from toolfold.tool import Json, Tool, is_mapping, is_object

__all__ = [
    "Checked",
    "Fault",
    "check",
    "compiles_at_once",
    "read_arguments",
    "schema_problem",
]

SCHEMA_LIMIT = 1_000_000
"""The longest schema that arguments are checked against, in bytes of compact JSON."""

VISITS_AT_MOST = 200_000
"""How many places a check may look at; arguments that would take more pass unchecked."""

FORMS_AT_MOST = 20_000
"""The same, where there are dates, times or ids to be read in them: that takes longer."""

_LARGE = 50_000
_UNKNOWN = prompts.unknown_arguments(())
_FORMS = tuple(f'"format":"{name}"'.encode() for name in CHECKED_FORMATS)


class Checked(NamedTuple):
    """Arguments after the check: usable if there are no faults."""

    arguments: dict[str, Json]
    faults: tuple[Fault, ...] = ()


class _Compiled(NamedTuple):
    validator: Validator | None
    problem: str | None
    extent: Extent | None = None
    size: int = 0
    """The length of the schema's text."""

    visits: int = VISITS_AT_MOST
    """How many places a check by it may look at."""

    known: KnownArguments | None = None
    """Which arguments it names; None where it may take others, too."""


_VALIDATORS: Memo[bytes, _Compiled] = Memo(
    4096, room=4 * 1024 * 1024, size=lambda compiled: compiled.size
)


def read_arguments(arguments: Json) -> dict[str, Json] | str:
    """Return arguments as an object, or the clause that says why they are none.

    An object, the JSON text of one (raw control characters in strings included), that text
    encoded once more, and blank or absent for no arguments.
    """
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    if isinstance(arguments, str | bytes):
        try:
            arguments = parse(arguments, control_characters=True)
        except (ValueError, RecursionError) as error:
            known = isinstance(error, json.JSONDecodeError)
            return prompts.not_json(error.msg, error.pos) if known else prompts.not_json(None, None)
        if isinstance(arguments, str):  # encoded twice
            inner = parsed(arguments)
            arguments = inner if is_mapping(inner) else arguments
        if arguments is None:
            return {}
    if is_mapping(arguments):
        return dict(arguments)
    return prompts.no_object(arguments)


def check(tool: Tool, arguments: dict[str, Json], *, refuse_unknown: bool = False) -> Checked:
    """Check arguments against the tool's schema, repairing what is harmless.

    A number in a string, a single value for a list, JSON text for an object or a list, a
    blank for an object that needs nothing, `"true"` for true, `"open"` for the option `"OPEN"`,
    null for what may be left out: what a schema asks for plainly and a model wrote almost so.

    Args:
        tool: Whose schema it is.
        arguments: What a model wrote.
        refuse_unknown: Whether an argument that the schema does not name is a fault, and told
            first. One that is misspelt is also one that is missing: both are told. A schema
            that cannot be used names nothing to hold a call to; one that forbids others has
            said so itself.
    """
    compiled = _compiled(tool)
    checked = _checked(compiled, arguments)
    return _with_unknown(compiled, checked) if refuse_unknown else checked


def _checked(compiled: _Compiled, arguments: dict[str, Json]) -> Checked:
    if compiled.validator is None or compiled.extent is None:
        return Checked(arguments)
    try:
        visits(compiled.extent, arguments, compiled.visits)
        if _is_valid(compiled.validator, arguments):
            return Checked(arguments)
        mended = repaired(arguments, compiled.extent.root)
        found = visits(compiled.extent, mended, compiled.visits)
    except (TooFarError, RecursionError):
        return Checked(arguments)
    if is_object(mended) and _is_valid(compiled.validator, mended):
        return Checked(mended)
    return Checked(arguments, faults_of(compiled.validator, compiled.extent.root, mended, found))


def _with_unknown(compiled: _Compiled, checked: Checked) -> Checked:
    known = compiled.known
    if compiled.validator is None or known is None or checked.arguments.keys() <= known.names:
        return checked
    if any(not path and text.startswith(_UNKNOWN) for path, text in checked.faults):
        return checked
    strange = unknown_arguments(known, checked.arguments, FAULTS_AT_MOST)
    said = (prompts.unknown_argument(cut(name, 80), near) for name, near in strange.items())
    unknown = (Fault("", one_line(text, 240)) for text in said)
    faults = tuple(islice(chain(unknown, checked.faults), FAULTS_AT_MOST))
    return Checked(checked.arguments, faults)


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
    return _VALIDATORS.get_or(_key(text), lambda: _compile(tool.parameters, text))


def _compile(parameters: Mapping[str, Json], text: bytes | None = None) -> _Compiled:
    import jsonschema_rs

    size = len(text or b"")
    try:
        schema = as_meant(parameters, text)
        extent = extent_of(schema)
        if not takes_objects(schema):
            return _Compiled(None, NO_OBJECT, size=size)
        validator = jsonschema_rs.validator_for(
            dict(schema),
            offline=True,
            validate_formats=True,
            formats=dict(CHECKED_FORMATS),
            pattern_options=jsonschema_rs.RegexOptions(size_limit=1_000_000),
        )
    except TooFarError as error:
        return _Compiled(None, too_far(error))
    except (ValueError, TypeError, RecursionError) as error:
        return _Compiled(None, one_line(str(error).split("\n", 1)[0], 200))
    has_forms = text is None or any(mark in text for mark in _FORMS)
    limit = FORMS_AT_MOST if has_forms else VISITS_AT_MOST
    return _Compiled(validator, None, extent, size, limit, known_arguments(parameters))


def _is_valid(validator: Validator, arguments: Json) -> bool:
    # A value no JSON can hold (an integer of a thousand digits) is the tool's to judge.
    try:
        return validator.is_valid(arguments)
    except (ValueError, TypeError):
        return True
