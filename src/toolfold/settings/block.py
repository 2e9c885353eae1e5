"""A block of a file, read as the class that declares its keys says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from toolfold.errors import ConfigError
from toolfold.settings.check import check, suggestion
from toolfold.settings.declared import Declared, declared, flat
from toolfold.settings.file import Given, Place

__all__ = ["checked", "given_in", "read_block"]

T = TypeVar("T")


def read_block(cls: type[T], block: Place, prefix: str, **more: Any) -> T:
    """Return what a block holds, as an instance of the class that declares its keys.

    Args:
        cls: A dataclass whose fields are settings.
        block: The block.
        prefix: What stands before a key in an error, as `serve.`.
        more: Values of fields that do not stand in the block.

    Raises:
        ConfigError: A key is unknown or a value cannot be used.
    """
    values: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for key, given in given_in(cls, block, prefix):
        value = checked(cls, key, given, prefix)
        outer = key.rpartition(".")[0]
        if outer:
            inner.setdefault(outer, {})[flat(cls)[key].name] = value
        else:
            values[declared(cls)[key].name] = value
    try:
        for outer, own in inner.items():
            values[declared(cls)[outer].name] = _made(declared(cls)[outer], own)
        return cls(**more, **values)
    except ConfigError as error:
        raise ConfigError(f"{error.message}{block.where}", hint=error.hint) from None


def given_in(cls: type, block: Place, prefix: str, what: str = "") -> Iterator[tuple[str, Given]]:
    """Yield what stands in a block, unchecked, by key; inner blocks' as `reranker.model`.

    Args:
        cls: The class that declares the keys.
        block: The block.
        prefix: What stands before a key in an error.
        what: What the block is, where an error says that it is no mapping.
    """
    known = declared(cls)
    for key, place in block.pairs(what or f"`{prefix.removesuffix('.')}`").items():
        kind = known[key].kind if key in known else None
        if kind is None or kind.type is None:
            yield key, Given(place.value, place.where)
        elif kind.name == "blocks":
            yield key, Given(tuple(_blocks(kind.type, place, f"{prefix}{key}")), place.where)
        elif place.is_mapping:
            for inner, given in given_in(kind.type, place, f"{prefix}{key}."):
                yield f"{key}.{inner}", given
        else:
            yield key, Given(place.value, place.where)


def checked(cls: type, key: str, given: Given, prefix: str = "") -> Any:
    """Return a value as the setting holds it.

    Args:
        cls: The class that declares the keys.
        key: The key; one of an inner block as `reranker.model`.
        given: The value, and where it stands.
        prefix: What stands before a key in an error.

    Raises:
        ConfigError: The key is unknown or the value cannot be used.
    """
    known = flat(cls)
    if key not in known:
        hint = suggestion(key, list(known))
        raise ConfigError(f"unknown key `{prefix}{key}`{given.where}", hint=hint)
    try:
        return check(f"{prefix}{key}", given.value, known[key].kind)
    except ConfigError as error:
        raise ConfigError(f"{error.message}{given.where}", hint=error.hint) from None


def _made(item: Declared, values: Mapping[str, Any]) -> Any:
    assert item.kind.type is not None
    return item.kind.type(**values)


def _blocks(cls: type, place: Place, prefix: str) -> Iterator[Any]:
    if not place.is_list:
        first, second, *_ = declared(cls)
        hint = f"write `- {first}: …` and `{second}: …`"
        raise ConfigError(f"`{prefix}` is no list{place.where}", hint=hint)
    for item in place.items:
        yield read_block(cls, item, f"{prefix}.")
