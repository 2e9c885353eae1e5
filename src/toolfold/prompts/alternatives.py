"""What would have done instead: the alternatives and exclusions of a schema, as clauses."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "EXCLUDED",
    "FITS_AN_ALTERNATIVE",
    "FITS_SEVERAL",
    "IS_ALLOWED",
    "IS_EMPTY",
    "formed",
    "has",
    "has_not",
    "in_ticks",
    "in_which",
    "is_kind",
    "is_option",
    "keeps",
    "kind_named",
    "may_not_be",
    "may_not_have",
    "must_be",
    "needs",
    "object_with",
    "only_one_of",
    "options_named",
    "where",
    "wrong_format",
]

EXCLUDED = "is of a kind that is not allowed"
FITS_AN_ALTERNATIVE = "fits one of its alternatives"
IS_ALLOWED = "is allowed"
IS_EMPTY = "is empty"
FITS_SEVERAL = "fits several alternatives, of which only one may fit"

_KINDS = {
    "array": "a list",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


def must_be(wanted: Sequence[str], more: int) -> str:
    """Say what a value may be."""
    either = "either " if len(wanted) == 2 and not more else ""
    return f"must be {either}{_or(wanted, more)}"


def needs(names: Sequence[str], more: int) -> str:
    """Say which members an object needs, one group of them or another."""
    return f"needs {_or(names, more)}"


def only_one_of(names: Sequence[str]) -> str:
    """Say that of several members only one may be given."""
    return f"takes only one of {', '.join(names)}"


def may_not_be(what: str) -> str:
    """Say what a value may not be."""
    return f"may not be {what}"


def may_not_have(names: Sequence[str]) -> str:
    """Say which members an object may not have."""
    return f"may not have {in_ticks(names)}" + (" together" if len(names) > 1 else "")


def wrong_format(form: str, example: str) -> str:
    """Say what form a text must have."""
    return f"is not {formed(form, example)}"


def kind_named(kind: str) -> str:
    """Return a type of JSON Schema as a noun with its article."""
    return _KINDS.get(kind, kind)


def object_with(names: Sequence[str]) -> str:
    """Return an object that has some members."""
    return f"an object with {in_ticks(names)}"


def in_which(whole: str, path: str, wish: str) -> str:
    """Return a value by what it, or a part of it, must be like."""
    return f"{whole} whose `{path}` {wish}" if path else f"{whole} that {wish}"


def is_kind(kinds: Sequence[str]) -> str:
    """Return the wish for types."""
    return f"is {' or '.join(map(kind_named, kinds))}"


def is_option(options: str) -> str:
    """Return the wish for listed values."""
    return f"is {options}"


def has(names: Sequence[str]) -> str:
    """Return the wish for members."""
    return f"has {in_ticks(names)}"


def has_not(names: Sequence[str]) -> str:
    """Return the wish for the absence of members."""
    return f"has no {' or '.join(f'`{name}`' for name in names)}"


def formed(form: str, example: str) -> str:
    """Return a text of some form."""
    return f'a {form} such as "{example}"'


def keeps(keyword: str, limit: str | None) -> str:
    """Return the wish for a constraint of the schema."""
    return f"keeps `{keyword}`" + ("" if limit is None else f" {limit}")


def options_named(options: str, count: int) -> str:
    """Return the values that there are."""
    return options if count == 1 else f"one of {options}"


def where(message: str, conditions: Sequence[str], holds: bool) -> str:
    """Say when a rule is one: where some conditions hold, or unless they do."""
    return f"{message} ({'where' if holds else 'unless'} {' and '.join(conditions)})"


def in_ticks(names: Sequence[str]) -> str:
    """Return names as code, with `and` between them."""
    return " and ".join(f"`{name}`" for name in names)


def _or(texts: Sequence[str], more: int) -> str:
    return " or ".join(texts) + (f" or {more:,} other forms" if more else "")
