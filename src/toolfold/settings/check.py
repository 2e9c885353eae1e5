"""One value of one setting: is it of the right kind, and in range?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeGuard

from toolfold.errors import ConfigError
from toolfold.settings.frozen import FrozenMapping

__all__ = ["HINTS", "Kind", "check", "suggestion"]

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""MCP's hints about what a call of a tool does, each true or false."""

_SHOWN_AT_MOST = 80


@dataclass(frozen=True, slots=True)
class Kind:
    """What values a setting takes."""

    name: Literal[
        "switch",
        "choice",
        "number",
        "integer",
        "boolean",
        "text",
        "texts",
        "names",
        "aliases",
        "annotations",
        "block",
        "blocks",
    ]
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    false: str | None = None
    """The choice that YAML's `off`, read as false, stands for."""

    words: tuple[tuple[str, str], ...] = ()
    """Other words for the choices, in small letters. With any, case does not count."""

    type: type | None = None
    """The class of a block, or of each block of a list."""

    optional: bool = False
    """Whether None is a value, too."""

    def __str__(self) -> str:
        match self.name:
            case "switch" | "choice":
                return " | ".join(self.choices)
            case "number" | "integer":
                what = "a number" if self.name == "number" else "a whole number"
                return f"{what} from {self.low:,g} to {self.high:,g}"
            case "boolean":
                return "true | false"
            case "text":
                return "a text"
            case "names":
                return "a list of names or patterns"
            case "aliases":
                return "a mapping from a tool's name to a list of words"
            case "annotations":
                return "a mapping from a tool's name or pattern to hints, each true or false"
            case "texts":
                return "a mapping from names to texts"
            case "blocks":
                return "a list of blocks"
            case _:
                return "a block"


def check(key: str, value: Any, kind: Kind) -> Any:
    """Return `value` as the setting holds it.

    Raises:
        ConfigError: It is of another kind or out of range.
    """
    if value is False and kind.false is not None:
        return kind.false
    if value is None and kind.optional:
        return None
    return _CHECKS[kind.name](key, value, kind)


def suggestion(key: str, known: list[str], *, what: str = "keys") -> str:
    """Return the nearest known key as a question, or all of them."""
    near = get_close_matches(key, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"the {what} are {', '.join(sorted(known))}"


def _choice(key: str, value: Any, kind: Kind) -> str:
    meant = value
    if kind.words and isinstance(value, str | int):
        word = str(value).strip().lower()
        meant = dict(kind.words).get(word, word)
    return meant if meant in kind.choices else _refuse(key, value, kind)


def _boolean(key: str, value: Any, kind: Kind) -> bool:
    return value if isinstance(value, bool) else _refuse(key, value, kind)


def _text(key: str, value: Any, kind: Kind) -> str:
    return value if isinstance(value, str) else _refuse(key, value, kind)


def _texts(key: str, value: Any, kind: Kind) -> Mapping[Any, Any]:
    return value if _is_mapping(value) else _refuse(key, value, kind)


def _number(key: str, value: Any, kind: Kind) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(key, value, kind)
    low = kind.low if kind.low is not None else -inf
    high = kind.high if kind.high is not None else inf
    # Not a number is in no range, and a whole number may be written with a point.
    if not low <= value <= high or (kind.name == "integer" and value != int(value)):
        _refuse(key, value, kind)
    return int(value) if kind.name == "integer" else float(value)


def _block(key: str, value: Any, kind: Kind) -> Any:
    if kind.type is not None and not isinstance(value, kind.type):
        _refuse(key, value, kind)
    return value


def _blocks(key: str, value: Any, kind: Kind) -> tuple[Any, ...]:
    if not _is_collection(value):
        _refuse(key, value, kind)
    return tuple(_block(key, item, Kind("block", type=kind.type)) for item in value)


def _names(key: str, value: Any, kind: Kind) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ConfigError(f"`{key}` is the text {value!r}, not a list", hint=f"write [{value}]")
    if not _is_collection(value):
        _refuse(key, value, kind)
    names: dict[str, None] = {}
    for item in value:
        if not isinstance(item, str) or not item:
            _refuse(key, item, Kind("text"))
        if item.startswith("preset:"):
            _check_preset(key, item)
        names[item] = None
    return tuple(sorted(names) if isinstance(value, set | frozenset) else names)


def _is_collection(value: Any) -> TypeGuard[Collection[Any]]:
    return isinstance(value, list | tuple | set | frozenset)


def _is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _check_preset(key: str, item: str) -> None:
    from toolfold.settings.model import PRESETS

    if item.removeprefix("preset:") not in PRESETS:
        known = ", ".join(f"preset:{name}" for name in PRESETS)
        raise ConfigError(f"`{key}` names the unknown preset {item!r}", hint=f"use {known}")


def _aliases(key: str, value: Any, kind: Kind) -> FrozenMapping[tuple[str, ...]]:
    if not _is_mapping(value):
        _refuse(key, value, kind)
    items: dict[str, tuple[str, ...]] = {}
    for name, words in value.items():
        if not isinstance(name, str):
            _refuse(key, name, kind)
        items[name] = (words,) if isinstance(words, str) else _names(f"{key}.{name}", words, kind)
    return FrozenMapping(tuple(items.items()))


def _annotations(key: str, value: Any, kind: Kind) -> FrozenMapping[FrozenMapping[bool]]:
    if not _is_mapping(value):
        _refuse(key, value, kind)
    items: dict[str, FrozenMapping[bool]] = {}
    for pattern, hints in value.items():
        if not isinstance(pattern, str) or not pattern or not _is_mapping(hints):
            _refuse(key, {pattern: hints}, kind)
        for hint, given in hints.items():
            if hint not in HINTS:
                raise ConfigError(
                    f"`{key}` has the unknown hint `{hint}` for {pattern!r}",
                    hint=suggestion(str(hint), list(HINTS), what="hints"),
                )
            if not isinstance(given, bool):
                _refuse(f"{key}.{pattern}.{hint}", given, Kind("boolean"))
        items[pattern] = FrozenMapping(tuple(hints.items()))
    return FrozenMapping(tuple(items.items()))


def _refuse(key: str, value: Any, kind: Kind) -> NoReturn:
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN_AT_MOST else f"{shown[:_SHOWN_AT_MOST]}…"
    raise ConfigError(f"`{key}` is {shown}", hint=f"write {kind}")


_CHECKS: Mapping[str, Callable[[str, Any, Kind], Any]] = MappingProxyType(
    {
        "switch": _choice,
        "choice": _choice,
        "number": _number,
        "integer": _number,
        "boolean": _boolean,
        "text": _text,
        "texts": _texts,
        "names": _names,
        "aliases": _aliases,
        "annotations": _annotations,
        "block": _block,
        "blocks": _blocks,
    }
)
