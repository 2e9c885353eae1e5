"""How a parameter's value is written into a request, style by style, as OpenAPI says.

The forms are those of RFC 6570, and `deepObject`, which OpenAPI adds: `a[b][c]=1`, and for
lists inside it `a[0]=1`. A value inside a list or an object that is itself one is written as
JSON wherever its style has no form for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

from toolfold._json_values import Json, compact, is_array, is_mapping

__all__ = ["Pair", "encoded", "encoded_reserved", "in_header", "in_path", "pairs_of", "plain"]

Pair = tuple[str, str]
"""A name and a value, encoded."""

_DEPTH = 20
_DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


def plain(value: Json) -> str:
    """Return a single value as a text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return compact(value)


def _items(value: Json, between: str, encode: Callable[[str], str]) -> list[str]:
    """Return what a list or an object is written as, in pieces; `between` names and values."""
    if is_array(value):
        return [encode(plain(each)) for each in value]
    return [f"{encode(key)}{between}{encode(plain(each))}" for key, each in value.items()]


def in_path(name: str, value: Json, style: str, explode: bool) -> str:
    """Return what stands in a path for a parameter, encoded: not a slash of it stays one."""
    has_parts = is_array(value) or is_mapping(value)
    if style == "label":
        if not has_parts:
            return f".{encoded(plain(value))}"
        return "." + ("." if explode else ",").join(_items(value, "=" if explode else ",", encoded))
    if style == "matrix":
        key = encoded(name)
        if not has_parts:
            text = encoded(plain(value))
            return f";{key}={text}" if text else f";{key}"
        if not explode:
            return f";{key}={','.join(_items(value, ',', encoded))}"
        front = f"{key}=" if is_array(value) else ""
        return "".join(f";{front}{item}" for item in _items(value, "=", encoded))
    return _simple(value, explode, encoded)


def in_header(value: Json, explode: bool) -> str:
    """Return what stands in a header, as it is."""
    return _simple(value, explode, str)


def _simple(value: Json, explode: bool, encode: Callable[[str], str]) -> str:
    if not (is_array(value) or is_mapping(value)):
        return encode(plain(value))
    return ",".join(_items(value, "=" if explode else ",", encode))


def encoded(text: str) -> str:
    """Return a text with everything encoded that could mean something in an address."""
    return quote(text, safe="", errors="replace")


def encoded_reserved(text: str) -> str:
    """Return a text as `allowReserved` wants it: what would end the value is encoded still."""
    return quote(text, safe=":/?[]@!$'()*,;=", errors="replace")


def pairs_of(
    name: str, value: Json, style: str, explode: bool, encode: Callable[[str], str] = encoded
) -> Iterator[Pair]:
    """Yield the pairs of a query, of cookies or of a form that a value comes to, encoded.

    A list that is not exploded is one value, with its delimiter in it.
    """
    if style == "deepObject":
        yield from _deep(encoded(name), value, encode, _DEPTH)
    elif is_array(value):
        if explode:
            yield from ((encoded(name), encode(plain(each))) for each in value)
        elif value:
            yield encoded(name), _DELIMITERS[style].join(_items(value, "", encode))
    elif is_mapping(value):
        if explode:
            yield from ((encoded(key), encode(plain(each))) for key, each in value.items())
        elif value:
            between = _DELIMITERS[style]
            yield encoded(name), between.join(_items(value, between, encode))
    elif value is not None:
        yield encoded(name), encode(plain(value))


def _deep(name: str, value: Json, encode: Callable[[str], str], depth: int) -> Iterator[Pair]:
    if depth and is_mapping(value):
        for key, each in value.items():
            yield from _deep(f"{name}%5B{encoded(key)}%5D", each, encode, depth - 1)
    elif depth and is_array(value):
        for place, each in enumerate(value):
            yield from _deep(f"{name}%5B{place}%5D", each, encode, depth - 1)
    elif value is not None:
        yield name, encode(plain(value))
