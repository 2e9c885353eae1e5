"""Settings from arguments, environment and file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from toolfold.errors import ConfigError
from toolfold.settings.check import Kind, check, suggestion
from toolfold.settings.file import OWN_FILE, Given, read_file
from toolfold.settings.model import Reranker, Settings

__all__ = ["ENVIRONMENT", "load_settings"]

_PREFIX = "TOOLFOLD_"
_KINDS: dict[str, Kind] = {f.name: f.metadata["kind"] for f in fields(Settings)}
_RERANKER_KINDS: dict[str, Kind] = {f.name: f.metadata["kind"] for f in fields(Reranker)}
_UNITED = ("core", "never_defer")
_OTHER_VARIABLES = {"TOOLFOLD_CONFIG", "TOOLFOLD_CORPORA"}

ENVIRONMENT: tuple[str, ...] = tuple(
    [f"{_PREFIX}{name.upper()}" for name in _KINDS if name != "reranker"]
    + [f"{_PREFIX}RERANKER_{name.upper()}" for name in _RERANKER_KINDS]
)
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
    layers: list[dict[str, Given]] = []
    if chosen or path.is_file():
        layers.append(read_file(path, list(_KINDS)))
    layers.append(dict(_from_environment(environ)))
    layers.append({key: Given(v, "") for key, v in arguments.items() if v is not None})
    return _merged(layers)


def _merged(layers: list[dict[str, Given]]) -> Settings:
    values: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    where: dict[str, str] = {}
    for layer in layers:
        for key, given in layer.items():
            value = _checked(key, given)
            where[key] = given.where
            if key.startswith("reranker."):
                inner[key.removeprefix("reranker.")] = value
            elif key in _UNITED:
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
        raise ConfigError(f"{error}{place}", hint=error.hint) from None


def _checked(key: str, given: Given) -> Any:
    name, _, inner = key.partition(".")
    kind = _RERANKER_KINDS.get(inner) if inner and name == "reranker" else _KINDS.get(key)
    if kind is None:
        known = [*_KINDS, *(f"reranker.{name}" for name in _RERANKER_KINDS)]
        raise ConfigError(f"unknown key `{key}`{given.where}", hint=suggestion(key, known))
    try:
        return check(key, given.value, kind)
    except ConfigError as error:
        raise ConfigError(f"{error}{given.where}", hint=error.hint) from None


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    names = {f"{_PREFIX}{name.upper()}": name for name in _KINDS if name != "reranker"}
    names |= {f"{_PREFIX}RERANKER_{n.upper()}": f"reranker.{n}" for n in _RERANKER_KINDS}
    for variable in sorted(environ):
        if not variable.startswith(_PREFIX) or variable in _OTHER_VARIABLES:
            continue
        if variable not in names:
            raise ConfigError(
                f"unknown environment variable `{variable}`",
                hint=suggestion(variable, list(names)),
            )
        key, text = names[variable], environ[variable]
        inner = key.removeprefix("reranker.")
        kind = _KINDS[key] if inner == key else _RERANKER_KINDS[inner]
        # A variable that is set to nothing is not set, unless nothing is a value.
        if text.strip() or kind.name == "text":
            where = f" in the environment variable {variable}"
            yield key, Given(_from_text(text, kind), where)


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
