"""One value of one setting: is it of the right kind, and in range?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal

from toolfold.errors import ConfigError

__all__ = ["Kind", "check"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What values a setting takes."""

    name: Literal[
        "switch", "choice", "number", "integer", "boolean", "text", "names", "aliases", "block"
    ]
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    false: str | None = None
    """The choice that YAML's `off`, read as false, stands for."""

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
            case _:
                return "a block"


def check(key: str, value: Any, kind: Kind) -> Any:
    """Return `value` as the setting holds it.

    Raises:
        ConfigError: It is of another kind or out of range.
    """
    match kind.name:
        case "switch":
            if isinstance(value, bool):
                return "on" if value else "off"
            return value if value in kind.choices else _refuse(key, value, kind)
        case "choice":
            if value is False and kind.false is not None:
                return kind.false
            return value if value in kind.choices else _refuse(key, value, kind)
        case "number" | "integer":
            return _number(key, value, kind)
        case "boolean":
            return value if isinstance(value, bool) else _refuse(key, value, kind)
        case "text":
            return value if isinstance(value, str) else _refuse(key, value, kind)
        case "names":
            return _names(key, value, kind)
        case "aliases":
            return _aliases(key, value, kind)
        case _:
            return value


def _number(key: str, value: Any, kind: Kind) -> int | float:
    number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if not number or (kind.name == "integer" and value != int(value)):
        _refuse(key, value, kind)
    if (kind.low is not None and value < kind.low) or (kind.high is not None and value > kind.high):
        _refuse(key, value, kind)
    return int(value) if kind.name == "integer" else float(value)


def _names(key: str, value: Any, kind: Kind) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ConfigError(f"`{key}` is the text {value!r}, not a list", hint=f"write [{value}]")
    if not isinstance(value, list | tuple | set | frozenset):
        _refuse(key, value, kind)
    items: list[Any] = sorted(value) if isinstance(value, set | frozenset) else list(value)
    for item in items:
        if not isinstance(item, str) or not item:
            _refuse(key, item, Kind("text"))
        if item.startswith("preset:"):
            _check_preset(key, item)
    return tuple(dict.fromkeys(items))


def _check_preset(key: str, item: str) -> None:
    from toolfold.settings.model import PRESETS

    if item.removeprefix("preset:") not in PRESETS:
        known = ", ".join(f"preset:{name}" for name in PRESETS)
        raise ConfigError(f"`{key}` names the unknown preset {item!r}", hint=f"use {known}")


def _aliases(key: str, value: Any, kind: Kind) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        _refuse(key, value, kind)
    items: dict[str, tuple[str, ...]] = {}
    for name, words in value.items():
        items[name] = (words,) if isinstance(words, str) else _names(f"{key}.{name}", words, kind)
    return MappingProxyType(items)


def _refuse(key: str, value: Any, kind: Kind) -> Any:
    raise ConfigError(f"`{key}` is {value!r}", hint=f"write {kind}")
