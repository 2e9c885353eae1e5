"""HTTP APIs beside the servers, read from the block `openapi`. No document is read yet.

An error names the API, the key, the line and the fix; it never shows a value that came out
of a reference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from toolfold.config.references import ReferenceProblem, References
from toolfold.errors import ConfigError
from toolfold.settings.block import checked, given_in
from toolfold.settings.declared import declared
from toolfold.settings.file import Given, Place
from toolfold.sources.openapi.http_api import HttpApi
from toolfold.tool import is_object

__all__ = ["ReadApis", "read_apis"]

_TEXTS = ("file", "url", "base_url")
_MAPPINGS = ("auth", "headers", "variables")


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
        resolved = one
        if key in _TEXTS:
            text = _resolved(references, one.value, f"{prefix}{key}", one.where, hidden)
            resolved = Given(text, one.where)
        elif key in _MAPPINGS and is_object(one.value):
            pairs = one.value
            texts = {
                str(inner): _resolved(references, v, f"{prefix}{key}.{inner}", one.where, hidden)
                for inner, v in pairs.items()
                if v is not None
            }
            resolved = Given(texts, one.where)
        values[_field(key)] = checked(HttpApi, key, resolved, prefix)
    try:
        api = HttpApi(name, **values, folder=folder, hidden=tuple(dict.fromkeys(hidden)))
    except ConfigError as error:
        raise ConfigError(f"{error.message}{place.where}", hint=error.hint) from None
    if not (api.file or api.url or api.disabled):
        raise ConfigError(
            f"`openapi.{name}` has neither `file` nor `url`{place.where}", hint="give one of them"
        )
    return api


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
