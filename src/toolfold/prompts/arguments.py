"""What is wrong with a call's arguments, as clauses."""

from __future__ import annotations

from collections.abc import Iterable

from toolfold.tool import Json

__all__ = [
    "NOT_ALLOWED",
    "TOO_DEEP",
    "bad_arguments",
    "breaks",
    "kind_of",
    "missing_argument",
    "no_object",
    "not_an_option",
    "not_json",
    "unknown_argument",
    "unknown_arguments",
    "unreadable_arguments",
    "wrong_type",
]

NOT_ALLOWED = "is not allowed"
TOO_DEEP = "they nest too deep to be checked"


def bad_arguments(name: str, faults: Iterable[tuple[str, str]], signature: str) -> str:
    """Return the answer to arguments that do not fit the tool's schema."""
    said = "; ".join(f"{path}: {message}" if path else message for path, message in faults)
    return f"{name} was not run. {said}. Signature: {signature}"


def unreadable_arguments(name: str, reason: str, signature: str | None) -> str:
    """Return the answer to arguments that are no object."""
    shown = f" Signature: {signature}" if signature else ""
    return f"{name} was not run: {reason}. Send one JSON object.{shown}"


def not_json(reason: str | None, position: int | None) -> str:
    """Say why a text is no JSON, and where, as far as that is known."""
    where = "" if position is None else f" at character {position}"
    return f"arguments are not valid JSON: {reason or 'unreadable'}{where}"


def no_object(value: Json) -> str:
    """Say that arguments are JSON, but no object."""
    return f"arguments are {kind_of(value)}, not an object"


def missing_argument(name: str) -> str:
    """Say which argument is required."""
    return f"missing argument {name!r}"


def unknown_arguments(names: Iterable[str]) -> str:
    """Say which arguments there are not."""
    return "unknown argument " + ", ".join(map(repr, names))


def unknown_argument(name: str, near: str | None) -> str:
    """Say that there is no such argument, and which may have been meant."""
    return f"unknown argument {name!r}" + (f", did you mean {near!r}?" if near else "")


def wrong_type(value: Json, wanted: Iterable[str]) -> str:
    """Say what a value is and what it should be."""
    return f"is {kind_of(value)}, not {' or '.join(wanted)}"


def not_an_option(options: str) -> str:
    """Say which values there are."""
    return f"is not one of {options}"


def breaks(keyword: str, limit: str | None) -> str:
    """Name the constraint of the schema that is broken."""
    return f"breaks `{keyword}`" + ("" if limit is None else f" {limit}")


def kind_of(value: Json) -> str:
    """Return what a JSON value is, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"
