"""HTTP APIs beside the servers, read from the block `openapi`. No document is read yet.

An error names the API, the key, the line and the fix; it never shows a value that came out
of a reference.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from toolfold.config.references import ReferenceProblem, References
from toolfold.errors import ConfigError
from toolfold.settings.block import checked, given_in
from toolfold.settings.declared import declared
from toolfold.settings.file import Given, Place
from toolfold.sources.openapi.client_credentials import ClientCredentials
from toolfold.sources.openapi.http_api import HttpApi
from toolfold.tool import is_object

__all__ = ["ReadApis", "read_apis"]

_TEXTS = ("file", "url", "base_url")
_MAPPINGS = ("headers", "variables")
_LASTING = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([smhd])\Z")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class ReadApis(NamedTuple):
    """What was made of the entries."""

    apis: tuple[HttpApi, ...]
    disabled: tuple[str, ...]


def read_apis(block: Place, references: References, folder: Path, *, strict: bool) -> ReadApis:
    """Return the APIs of a block `openapi`.

    Args:
        block: The block: by name, a file, an address, or a block of keys.
        references: What resolves `${…}`.
        folder: Where relative paths start.
        strict: Whether an entry that cannot be used is an error; else it is an API that says
            so.

    Raises:
        ConfigError: The block is no mapping; with `strict`, also what is wrong in it.
    """
    if not block.is_mapping:
        raise ConfigError(
            f"`openapi` is no mapping{block.where}",
            hint="name a document as `openapi: {NAME: {file: …}}`",
        )
    apis: list[HttpApi] = []
    disabled: list[str] = []
    for name, place in block.pairs("`openapi`").items():
        if not name.strip():
            raise ConfigError(f"an entry of `openapi` has no name{place.where}", hint="give one")
        try:
            api = _read(name, place, references, folder)
        except ConfigError as error:
            if strict:
                raise
            api = HttpApi(name, problem=error)
        if api.disabled:
            disabled.append(name)
        else:
            apis.append(api)
    return ReadApis(tuple(apis), tuple(disabled))


def _read(name: str, place: Place, references: References, folder: Path) -> HttpApi:
    prefix = f"openapi.{name}."
    hidden: list[str] = []
    if place.is_mapping:
        given = dict(given_in(HttpApi, place, prefix))
    elif isinstance(place.value, str):
        key = "url" if place.value.startswith(("http://", "https://")) else "file"
        given = {key: Given(place.value, place.where)}
    else:
        raise ConfigError(
            f"`openapi.{name}` is {place.value!r}{place.where}",
            hint="write a file, an address, or a block with `file` or `url`",
        )
    values: dict[str, Any] = {}
    for key, one in given.items():
        value = Given(_value(key, one, references, prefix, hidden), one.where)
        values[_field(key)] = checked(HttpApi, key, value, prefix)
    try:
        api = HttpApi(name, **values, folder=folder, hidden=tuple(dict.fromkeys(hidden)))
    except ConfigError as error:
        raise ConfigError(f"{error.message}{place.where}", hint=error.hint) from None
    if not (api.file or api.url or api.disabled):
        raise ConfigError(
            f"`openapi.{name}` has neither `file` nor `url`{place.where}", hint="give one of them"
        )
    return api


def _value(key: str, given: Given, references: References, prefix: str, hidden: list[str]) -> Any:
    """Return a key's value with its references resolved, to be checked."""
    value, where = given
    if key in ("auth", "headers") and not is_object(value):
        # It may be a secret: it is not shown.
        raise ConfigError(
            f"`{prefix}{key}` is no mapping{where}", hint=f"write `{key}: {{NAME: …}}`"
        )
    if key == "auth":
        return _auth(given, references, f"{prefix}auth", hidden)
    if key in _MAPPINGS and is_object(value):
        return {
            str(inner): _resolved(references, text, f"{prefix}{key}.{inner}", where, hidden)
            for inner, text in value.items()
            if text is not None
        }
    if key in _TEXTS:
        return _resolved(references, value, f"{prefix}{key}", where, hidden)
    return _seconds(value) if key == "refresh" and isinstance(value, str) else value


def _auth(
    given: Given, references: References, key: str, hidden: list[str]
) -> dict[str, str | ClientCredentials]:
    """Return credentials by scheme: texts as they are, blocks as what tokens are asked for with."""
    return {
        str(scheme): (
            _client(value, references, f"{key}.{scheme}", given.where, hidden)
            if is_object(value)
            else _resolved(references, value, f"{key}.{scheme}", given.where, hidden)
        )
        for scheme, value in given.value.items()
        if value is not None
    }


def _client(
    block: dict[str, Any], references: References, key: str, where: str, hidden: list[str]
) -> ClientCredentials:
    values: dict[str, Any] = {}
    for name, value in block.items():
        inner = f"{key}.{name}"
        if name == "scopes":
            # As in OAuth itself, a text of several is understood, too.
            resolved = tuple(value.split()) if isinstance(value, str) else value
        elif name == "parameters" and is_object(value):
            resolved = {
                str(each): _resolved(references, text, f"{inner}.{each}", where, hidden)
                for each, text in value.items()
            }
        elif name in declared(ClientCredentials):
            resolved = _resolved(references, value, inner, where, hidden)
        else:
            resolved = value
        values[str(name)] = checked(ClientCredentials, name, Given(resolved, where), f"{key}.")
    try:
        return ClientCredentials(**values)
    except ConfigError as error:
        raise ConfigError(f"in `{key}`, {error.message}{where}", hint=error.hint) from None


def _seconds(text: str) -> float | str:
    """Return how long a text such as `30m` or `1h` lasts; another text as it is, to be refused."""
    match = _LASTING.match(text.strip().lower())
    return text if match is None else float(match[1]) * _UNITS[match[2]]


def _field(key: str) -> str:
    known = declared(HttpApi)
    return known[key].name if key in known else key


def _resolved(references: References, value: Any, key: str, where: str, hidden: list[str]) -> Any:
    """Return a text with its references resolved; anything else as it is, to be refused."""
    if isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, int | float):
        value = str(value)
    if not isinstance(value, str):
        raise ConfigError(f"`{key}` is no text{where}", hint="write a text in quotes")
    try:
        text, secrets = references.resolve(value)
    except ReferenceProblem as problem:
        raise ConfigError(f"`{key}`{where} {problem}", hint=problem.hint) from None
    hidden += secrets
    return text
