"""A call as an HTTP request: every argument at its place, written as the document says.

What cannot be sent is refused before anything is: a value that would lead out of the path, a
line break in a header, bytes that are no base64.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import NamedTuple
from urllib.parse import quote, unquote

from toolfold._json_values import Json, is_array, is_mapping, sendable
from toolfold.prompts import http_calls
from toolfold.sources.openapi._request_bodies import FORM, MULTIPART, is_json
from toolfold.sources.openapi._styles import (
    Pair,
    encoded,
    encoded_reserved,
    in_header,
    in_path,
    pairs_of,
    plain,
)
from toolfold.sources.openapi.operation import Body, BodyProperty, Operation, Parameter

__all__ = ["CannotSendError", "HttpRequest", "request_of"]

_TEMPLATE = re.compile(r"\{([^{}]*)\}")
_FIXED = "/:@!$&'()*+,;=-._~%"
_DECODED_AT_MOST = 8
_DATA_URL = re.compile(r"data:[^,]{0,200};base64,")


class CannotSendError(Exception):
    """A call's arguments cannot be sent. Its text is the clause that says why, for a model."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request, before it is signed."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes | None = None


class _Part(NamedTuple):
    """A part of a multipart body."""

    name: str
    content: bytes
    media_type: str | None = None
    file_name: str | None = None


def request_of(operation: Operation, arguments: Mapping[str, Json]) -> HttpRequest:
    """Return the request that a call of an operation comes to.

    Args:
        operation: The operation.
        arguments: The arguments, by what the tool calls them. Those that it does not know
            are passed over.

    Raises:
        CannotSendError: An argument is missing or cannot be sent.
    """
    by_place: dict[str, list[tuple[Parameter, Json]]] = {}
    for parameter in operation.parameters:
        value = arguments.get(parameter.argument)
        if value is not None:
            by_place.setdefault(parameter.location, []).append((parameter, value))
    path = _path(operation, by_place.get("path", []))
    pairs = [pair for p, value in by_place.get("query", []) for pair in _pairs(p, value)]
    query = "&".join(f"{name}={value}" for name, value in pairs)
    headers = {"accept": operation.accept}
    for parameter, value in by_place.get("header", []):
        headers[parameter.name] = _header(parameter, value)
    cookies = [pair for p, value in by_place.get("cookie", []) for pair in _pairs(p, value)]
    if cookies:
        headers["cookie"] = "; ".join(f"{name}={value}" for name, value in cookies)
    content = None
    if operation.body is not None:
        content, media_type = _content(operation.body, arguments)
        if content is not None:
            headers["content-type"] = media_type
    url = f"{operation.server}{path}" + (f"?{query}" if query else "")
    return HttpRequest(operation.method, url, headers, content)


# ---- outside of the body


def _path(operation: Operation, given: list[tuple[Parameter, Json]]) -> str:
    values = {p.name: _in_path(p, value) for p, value in given}
    by_name = {p.name: p for p in operation.parameters if p.location == "path"}

    def put(name: str) -> str:
        if not values.get(name):
            shown = by_name[name].argument if name in by_name else name
            raise CannotSendError(http_calls.path_needs(shown))
        return values[name]

    pieces = _TEMPLATE.split(operation.path)
    path = "".join(
        put(piece) if place % 2 else quote(piece, safe=_FIXED) for place, piece in enumerate(pieces)
    )
    if _leads_out(path):
        raise CannotSendError(http_calls.PATH_LEADS_OUT)
    return path


def _leads_out(path: str) -> bool:
    """Whether a step of a path is `.` or `..`, also for a server that decodes before it looks."""
    for _ in range(_DECODED_AT_MOST):
        if any(step in (".", "..") for step in path.replace("\\", "/").split("/")):
            return True
        decoded = unquote(path)
        if decoded == path:
            return False
        path = decoded
    return True


def _in_path(parameter: Parameter, value: Json) -> str:
    if parameter.media_type is not None:
        return encoded(_written(parameter.media_type, value))
    return in_path(parameter.name, value, parameter.style, parameter.explode)


def _pairs(parameter: Parameter, value: Json) -> Iterable[Pair]:
    encode = encoded_reserved if parameter.allow_reserved else encoded
    if parameter.media_type is not None:
        return [(encoded(parameter.name), encode(_written(parameter.media_type, value)))]
    return pairs_of(parameter.name, value, parameter.style, parameter.explode, encode)


def _header(parameter: Parameter, value: Json) -> str:
    if parameter.media_type is not None:
        text = _written(parameter.media_type, value)
    else:
        text = in_header(value, parameter.explode)
    if not text.isascii() or not text.isprintable():
        raise CannotSendError(http_calls.header_takes(parameter.argument))
    return text


def _written(media_type: str, value: Json) -> str:
    if is_json(media_type):
        return sendable(value).decode()
    return plain(value)


# ---- the body


def _content(body: Body, arguments: Mapping[str, Json]) -> tuple[bytes | None, str]:
    """Return the bytes of a body, None where there is none, and its media type."""
    essence = body.media_type.partition(";")[0].strip().lower()
    if body.argument is not None:
        if body.argument not in arguments:
            return None, ""
        whole = arguments[body.argument]
        if essence in (FORM, MULTIPART) and is_mapping(whole):
            named = [(body.properties.get(n, BodyProperty(n)), v) for n, v in whole.items()]
            return _form(essence, named)
        if body.is_file:
            return _bytes(whole, body.argument), body.media_type
        written = sendable(whole) if is_json(essence) else plain(whole).encode("utf-8", "replace")
        return written, body.media_type
    given = [(p, arguments[name]) for name, p in body.properties.items() if name in arguments]
    if not given and not body.is_required:
        return None, ""
    if essence in (FORM, MULTIPART):
        return _form(essence, given)
    return sendable({p.name: value for p, value in given}), body.media_type


def _form(essence: str, given: list[tuple[BodyProperty, Json]]) -> tuple[bytes, str]:
    if essence == MULTIPART:
        return _multipart([part for p, value in given for part in _parts(p, value)])
    pairs = [pair for p, value in given for pair in _form_pairs(p, value)]
    return "&".join(f"{name}={value}" for name, value in pairs).encode(), FORM


def _form_pairs(known: BodyProperty, value: Json) -> Iterable[Pair]:
    encode = encoded_reserved if known.allow_reserved else encoded
    if known.media_type is not None and is_json(known.media_type):
        return [(encoded(known.name), encode(_written(known.media_type, value)))]
    if is_mapping(value) and known.style == "form":
        # An object's own properties would be taken for the form's.
        return pairs_of(known.name, value, "deepObject", True, encode)
    return pairs_of(known.name, value, known.style, known.explode, encode)


def _parts(known: BodyProperty, value: Json) -> Iterator[_Part]:
    if value is None:
        return
    if is_array(value):
        for each in value:
            yield from _parts(known, each)
    elif known.is_file:
        kind = known.media_type or "application/octet-stream"
        yield _Part(known.name, _bytes(value, known.name), kind, known.name)
    elif is_mapping(value):
        yield _Part(known.name, sendable(value), known.media_type or "application/json")
    else:
        yield _Part(known.name, plain(value).encode("utf-8", "replace"), known.media_type)


def _multipart(parts: list[_Part]) -> tuple[bytes, str]:
    boundary = token_hex(16)
    out = bytearray()
    for part in parts:
        out += f"--{boundary}\r\ncontent-disposition: form-data; name={_quoted(part.name)}".encode()
        if part.file_name is not None:
            out += f"; filename={_quoted(part.file_name)}".encode()
        if part.media_type is not None:
            kind = part.media_type.partition(",")[0].encode("ascii", "ignore").decode()
            out += f"\r\ncontent-type: {kind}".encode()
        out += b"\r\n\r\n" + part.content + b"\r\n"
    out += f"--{boundary}--\r\n".encode()
    return bytes(out), f"{MULTIPART}; boundary={boundary}"


def _quoted(name: str) -> str:
    escaped = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    return f'"{escaped}"'


def _bytes(value: Json, argument: str) -> bytes:
    if isinstance(value, str):
        try:
            return b64decode(_DATA_URL.sub("", value, count=1), validate=True)
        except (Base64Error, ValueError):
            pass
    raise CannotSendError(http_calls.needs_base64(argument))
