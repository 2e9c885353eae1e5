"""Settings from arguments, environment and file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolfold.errors import ConfigError
from toolfold.settings.block import checked, given_in
from toolfold.settings.check import Kind, suggestion
from toolfold.settings.declared import declared, flat
from toolfold.settings.file import OWN_FILE, Given, Place, find_block
from toolfold.settings.model import Reranker, Settings

__all__ = ["ENVIRONMENT", "PLACES", "load_settings", "settings_in", "variable"]

_PREFIX = "TOOLFOLD_"
_OTHER_VARIABLES = {"TOOLFOLD_CONFIG", "TOOLFOLD_CORPORA"}


def variable(key: str) -> str:
    """Return the environment variable of a setting."""
    return f"{_PREFIX}{key.replace('.', '_').upper()}"


_VARIABLES: Mapping[str, str] = MappingProxyType(
    {variable(key): key for key, item in flat(Settings).items() if item.kind.name != "block"}
)

PLACES: Mapping[str, str] = MappingProxyType(dict.fromkeys(declared(Settings), "tools.tool_search"))
"""The block of a file where each setting stands."""

ENVIRONMENT: tuple[str, ...] = tuple(_VARIABLES)
"""The environment variables that hold settings, one each."""


def load_settings(
    file: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    **arguments: Any,
) -> Settings:
    """Return the settings: arguments over environment over file over defaults.

    Args:
        file: A `toolfold.yaml`, or the configuration of another host that has the block
            `tools.tool_search`. Without it, `TOOLFOLD_CONFIG`, then `toolfold.yaml` in the
            working directory, if it exists.
        environ: The environment; the process's own by default.
        arguments: Settings by name. None stands for one that is not given.

    Raises:
        ConfigError: A key is unknown or a value cannot be used.
    """
    environ = os.environ if environ is None else environ
    chosen = file or environ.get("TOOLFOLD_CONFIG")
    path = Path(chosen) if chosen else Path(OWN_FILE)
    found = chosen or path.is_file()
    block = find_block(path, PLACES) if found else None
    return settings_in(block, environ, **arguments)


def settings_in(block: Place | None, environ: Mapping[str, str], **arguments: Any) -> Settings:
    """Return the settings where the file's block is found already.

    Args:
        block: The block `tools.tool_search`, if there is one.
        environ: The environment.
        arguments: Settings by name. None stands for one that is not given.

    Raises:
        ConfigError: A key is unknown or a value cannot be used.
    """
    layers = [dict(_from_file(block)), dict(_from_environment(environ))]
    layers.append({key: Given(v, "") for key, v in arguments.items() if v is not None})
    return _merged(layers)


def _merged(layers: list[dict[str, Given]]) -> Settings:
    values: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    where: dict[str, str] = {}
    for layer in layers:
        for key, given in layer.items():
            value = checked(Settings, key, given)
            where[key] = given.where
            if key.startswith("reranker."):
                inner[key.removeprefix("reranker.")] = value
            elif declared(Settings)[key].united:
                values[key] = (*values.get(key, ()), *value)
            else:
                values[key] = value
    if inner:
        values.setdefault("reranker", Reranker(**inner))
    # A maximum below the built-in default lowers that default; only two values that were
    # both given can contradict each other.
    most = values.get("max_search_limit", Settings().max_search_limit)
    values.setdefault("search_default_limit", min(Settings().search_default_limit, most))
    try:
        return Settings(**values)
    except ConfigError as error:
        place = where.get("search_default_limit") or where.get("max_search_limit", "")
        raise ConfigError(f"{error.message}{place}", hint=error.hint) from None


def _from_file(block: Place | None) -> Iterator[tuple[str, Given]]:
    if block is None:
        return
    if block.is_mapping:
        yield from given_in(Settings, block, "", "`tool_search`")
        return
    value = block.value
    if isinstance(value, bool):
        # As the bare value, true is the older spelling of `enabled: auto`.
        yield "enabled", Given("auto" if value else "off", block.where)
    elif value is not None:
        raise ConfigError(
            f"`tools.tool_search` is {value!r}{block.where}",
            hint="write true, false, or a block of settings",
        )


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    for name in sorted(environ):
        if not name.startswith(_PREFIX) or name in _OTHER_VARIABLES:
            continue
        if name not in _VARIABLES:
            raise ConfigError(
                f"unknown environment variable `{name}`",
                hint=suggestion(name, list(_VARIABLES)),
            )
        key, text = _VARIABLES[name], environ[name]
        kind = flat(Settings)[key].kind
        # A variable that is set to nothing is not set, unless nothing is a value.
        if text.strip() or kind.name == "text":
            yield key, Given(_from_text(text, kind), f" in the environment variable {name}")


def _from_text(text: str, kind: Kind) -> Any:
    """Return an environment variable's text as the value it stands for."""
    if kind.name == "text":
        return text
    if kind.name == "names" and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return text
