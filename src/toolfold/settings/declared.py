"""How a setting is declared: once, as a field of a frozen dataclass.

    threshold_pct: float = setting(10.0, "The share of the window.", low=0, high=100)

The field's type says what it takes, its declaration the default, the range and the meaning.
What reads a file, the environment or a flag, and the pages of the reference, are derived
from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints

from toolfold.settings.check import Kind, check

__all__ = ["Declared", "check_fields", "declared", "flat", "setting"]

_DECLARATION = "setting"
_SWITCHED = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}


@dataclass(frozen=True, slots=True)
class Declared:
    """A setting as it is declared."""

    name: str
    """The field of the class."""

    key: str
    """What stands in a file; most often the field's own name."""

    default: Any
    meaning: str
    """What it means, in a sentence or two."""

    kind: Kind
    """What it takes."""

    also: tuple[str, ...] = ()
    """What other programs call it in their files."""

    united: bool = False
    """Whether the values of several places are put together, instead of the last winning."""

    named: bool = False
    """Whether only a file that somebody named may set it: it sends, writes or permits."""


@dataclass(frozen=True, slots=True)
class _Declaration:
    meaning: str
    low: float | None
    high: float | None
    false: str | None
    words: Mapping[str, str]
    key: str
    also: tuple[str, ...]
    united: bool
    named: bool


def setting(
    default: Any,
    meaning: str,
    *,
    low: float | None = None,
    high: float | None = None,
    false: str | None = None,
    words: Mapping[str, str] = MappingProxyType({}),
    key: str = "",
    also: tuple[str, ...] = (),
    united: bool = False,
    named: bool = False,
) -> Any:
    """Declare a field of a dataclass as a setting.

    Args:
        default: Its value where none is given.
        meaning: What it means, in a sentence or two.
        low: The least value of a number.
        high: The greatest.
        false: The choice that YAML's `off`, read as false, stands for.
        words: Other words for its choices, in small letters; with any, case does not count.
        key: What stands in a file, where that is not the field's name.
        also: What other programs call it in their files.
        united: Whether the values of several places are put together.
        named: Whether only a file that somebody named may set it.
    """
    declaration = _Declaration(meaning, low, high, false, words, key, also, united, named)
    return field(default=default, metadata={_DECLARATION: declaration})


@cache
def declared(cls: type) -> Mapping[str, Declared]:
    """Return what a class declares, by the key that stands in a file, in order."""
    hints = get_type_hints(cls)
    found: dict[str, Declared] = {}
    for item in dataclasses.fields(cls):
        own: _Declaration | None = item.metadata.get(_DECLARATION)
        if own is not None:
            kind = _kind(hints[item.name], own)
            key = own.key or item.name
            found[key] = Declared(
                item.name, key, item.default, own.meaning, kind, own.also, own.united, own.named
            )
    return MappingProxyType(found)


@cache
def flat(cls: type) -> Mapping[str, Declared]:
    """Return what a class and the blocks in it declare; inner keys as `reranker.model`."""
    own = dict(declared(cls))
    for key, item in tuple(own.items()):
        if item.kind.name == "block" and item.kind.type is not None:
            own |= {f"{key}.{name}": inner for name, inner in declared(item.kind.type).items()}
    return MappingProxyType(own)


def check_fields(values: object, prefix: str) -> None:
    """Check every declared field of a frozen dataclass, and keep each as it is to be held.

    Args:
        values: The instance, inside its `__post_init__`.
        prefix: What stands before a key in an error.

    Raises:
        ConfigError: A value is of another kind or out of range.
    """
    for item in declared(type(values)).values():
        value = check(prefix + item.name, getattr(values, item.name), item.kind)
        object.__setattr__(values, item.name, value)


def _is_class(hint: Any) -> TypeGuard[type]:
    """Whether a type is a class that may declare settings itself."""
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def _kind(hint: Any, own: _Declaration) -> Kind:
    """Return what a field of a type takes."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and NoneType in inner:
        (rest,) = [part for part in inner if part is not NoneType]
        return dataclasses.replace(_kind(rest, own), optional=True)
    if origin is Literal:
        is_switch = {"on", "off"} <= set(inner)
        words = {**(_SWITCHED if is_switch else {}), **own.words}
        name = "switch" if is_switch else "choice"
        return Kind(name, choices=inner, false=own.false, words=tuple(words.items()))
    if _is_class(hint):
        return Kind("block", type=hint)
    if origin is tuple:
        each = inner[0]
        return Kind("blocks", type=each) if _is_class(each) else Kind("names")
    if origin is Mapping:
        return Kind(_MAPPINGS.get(inner[1], "texts"))
    if hint is bool:
        return Kind("boolean")
    if hint is int:
        return Kind("integer", low=own.low, high=own.high)
    if hint is float:
        return Kind("number", low=own.low, high=own.high)
    return Kind("text", false=own.false)


_MAPPINGS: Mapping[Any, Literal["aliases", "annotations", "texts"]] = {
    tuple[str, ...]: "aliases",
    Mapping[str, bool]: "annotations",
    str: "texts",
}
