"""JSON values: what they are, read from text, written as text, copied.

orjson does the work wherever it can. What it refuses, Python's own `json` does, so that one
value means one thing however it came:

- An integer beyond 64 bits is written and read digit by digit.
- Half of a surrogate pair stays in a text, is an escape in bytes, and is a replacement
  character in what goes to somebody else's parser.
- NaN and the infinities, which JSON has no word for, are written as null. They are read
  where somebody wrote them all the same.
- Nesting is written to 900 levels, or as deep as Python goes where that is less; deeper is a
  `NotJsonError`.
- A mapping that is no dict is an object.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias, TypeGuard, cast

import orjson

from toolfold.errors import ToolfoldError

__all__ = [
    "Json",
    "NotJsonError",
    "canonical",
    "compact",
    "compact_bytes",
    "copied",
    "fast_bytes",
    "is_array",
    "is_mapping",
    "is_object",
    "parse",
    "parse_strict",
    "sendable",
    "text_of_any",
]

Json: TypeAlias = Any
"""A JSON value."""

# orjson reads an integer of more than 64 bits as a float; twenty digits may be one.
_LONG_NUMBER = re.compile("[0-9]{20}")
_LONG_NUMBER_BYTES = re.compile(b"[0-9]{20}")

# Just below where the oldest Python that we run on ends.
_DEEPEST = 900


class NotJsonError(ToolfoldError):
    """A value cannot be written as JSON. Its text is the clause that follows the value's name."""


def is_object(value: Json) -> TypeGuard[dict[str, Json]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_mapping(value: Json) -> TypeGuard[Mapping[str, Json]]:
    """Whether a value is an object in a wider sense: any mapping."""
    # Nearly all are plain objects, and those are told without asking an abstract class.
    return isinstance(value, dict) or isinstance(value, Mapping)  # noqa: SIM101


def is_array(value: Json) -> TypeGuard[list[Json]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def parse(text: str | bytes, *, control_characters: bool = False) -> Json:
    """Return the value of a JSON text.

    Args:
        text: The text.
        control_characters: Whether they may stand in strings as they are.

    Raises:
        json.JSONDecodeError: It is not JSON; the position is that of Python's own reader.
        RecursionError: It nests deeper than Python goes.
    """
    long = _LONG_NUMBER.search(text) if isinstance(text, str) else _LONG_NUMBER_BYTES.search(text)
    if long is None:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
    return json.loads(text, strict=not control_characters)


def parse_strict(text: str | bytes) -> Json:
    """Return the value of a text that every parser of JSON takes.

    NaN, half of a surrogate pair and a number beyond a float are refused; an integer beyond
    64 bits becomes a float.

    Raises:
        json.JSONDecodeError: It is not such a text.
    """
    return orjson.loads(text)


def fast_bytes(value: Json) -> bytes | None:
    """Return the compact JSON of a value, its keys in their order; None where it is not quick.

    For keys of caches and for sizes, which can do without the rare value that only the slow
    way writes.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return None


def compact(value: Json) -> str:
    """Return the compact JSON text of a value, its keys in their order.

    Raises:
        NotJsonError: It has none.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return _written(value, ascii_only=False)


def compact_bytes(value: Json) -> bytes:
    """Return the compact JSON of a value, its keys in their order, for `parse`.

    Raises:
        NotJsonError: It has none.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return _written(value).encode()


def canonical(value: Json) -> bytes:
    """Return the one JSON of a value: compact, with sorted keys. Digests are made of it.

    Raises:
        NotJsonError: It has none.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return _written(value, sort_keys=True).encode()


def sendable(value: Json) -> bytes:
    """Return the compact JSON of a value such that every parser takes it.

    Half of a surrogate pair becomes a replacement character.

    Raises:
        NotJsonError: It has none.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        text = _written(value, ascii_only=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def copied(value: Mapping[str, Json]) -> dict[str, Json]:
    """Return an object that shares nothing with `value`.

    Raises:
        NotJsonError: It is not JSON.
    """
    try:
        return orjson.loads(orjson.dumps(value))
    except TypeError:
        return json.loads(_written(value))


def text_of_any(value: Any) -> str:
    """Return a JSON text of any Python value; where it has none, what Python shows of it.

    Models and dataclasses become objects, sets and tuples arrays, bytes their number.
    """
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _plain(value: Any) -> Any:
    """Return a value that is not JSON as one that is."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    return str(value)


def _written(value: Json, *, ascii_only: bool = True, sort_keys: bool = False) -> str:
    encoder = json.JSONEncoder(
        ensure_ascii=ascii_only,
        allow_nan=False,
        sort_keys=sort_keys,
        separators=(",", ":"),
        default=_as_object,
    )
    try:
        try:
            text = encoder.encode(value)
        except ValueError as error:
            # A number that JSON has no word for, or a circle.
            with suppress(RecursionError):
                return encoder.encode(_without_nan(value))
            raise error from None
        # How deep Python itself goes differs from one version to the next.
        if _is_too_deep(value):
            raise RecursionError
        return text
    except RecursionError:
        raise NotJsonError("nests too deep to be read", hint="flatten it") from None
    except (TypeError, ValueError) as error:
        raise NotJsonError(
            f"holds something that is not JSON: {error}",
            hint="give plain dicts, lists, strings, numbers, booleans and None",
        ) from None


def _is_too_deep(value: Json) -> bool:
    """Whether a value that has no circle nests deeper than what we read."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [part for one in level for part in _parts(one)]
        if not level:
            return False
    return True


def _parts(value: Json) -> Iterable[Json]:
    if is_mapping(value):
        return value.values()
    # A tuple is written as an array is.
    return cast("Iterable[Json]", value) if isinstance(value, list | tuple) else ()


def _as_object(value: Json) -> dict[str, Json]:
    if is_mapping(value):
        return dict(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _without_nan(value: Json) -> Json:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_mapping(value):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if is_array(value) or _is_tuple(value):
        return list(map(_without_nan, value))
    return value


def _is_tuple(value: Json) -> TypeGuard[tuple[Json, ...]]:
    return isinstance(value, tuple)
