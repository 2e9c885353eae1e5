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
from toolfold.settings.declared import Declared, declared, flat
from toolfold.settings.file import OWN_FILE, Given, Place, find_block
from toolfold.settings.model import MemorySettings, Reranker, Settings
from toolfold.settings.words_file import NO_FILE, with_words_beside

__all__ = [
    "ENVIRONMENT",
    "PLACES",
    "load_settings",
    "refuse_unnamed",
    "settings_in",
    "variable",
]

_PREFIX = "TOOLFOLD_"
_CAREFUL = ("destructiveHint", "openWorldHint")
"""The hints that ask for care where they are true; the others do where they are false."""

_BLOCKS: Mapping[str, type[Any]] = {"reranker": Reranker, "memory": MemorySettings}
_OTHER_VARIABLES = {"TOOLFOLD_ADMIN", "TOOLFOLD_CONFIG", "TOOLFOLD_CORPORA", "TOOLFOLD_STORE"}
"""Those that hold no setting: our own, and the names by which guides have `serve` find secrets."""


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
            working directory, if it exists. That one, which nobody named, may not say where
            anything is sent or written, nor that a tool does no harm.
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
    if block is not None and not chosen:
        refuse_unnamed(block)
    settings = settings_in(block, environ, **arguments)
    return with_words_beside(settings, path if found else None)


def refuse_unnamed(block: Place) -> None:
    """Refuse what only a file that somebody named may set.

    Whoever looks into a folder did not choose what its file says: it may say how to fold,
    and neither where anything is sent or written nor what may run unasked.

    Args:
        block: The block `tools.tool_search` of a file that was found.

    Raises:
        ConfigError: It holds such a setting, with another value than the default.
    """
    known = flat(Settings)
    for key, given in _from_file(block):
        if key not in known or not known[key].named:
            continue
        if not _is_harmless(checked(Settings, key, given), known[key]):
            raise ConfigError(
                f"nobody named the file in which `{key}` stands,{given.where}",
                hint=f"give `--config {OWN_FILE}` if you trust it",
            )


def _is_harmless(value: Any, item: Declared) -> bool:
    if item.kind.name == "annotations":
        # To call a tool more dangerous than it is does nobody harm.
        hints = [hint for each in value.values() for hint in each.items()]
        return all(says == (name in _CAREFUL) for name, says in hints)
    return value in (item.default, item.kind.false)


def settings_in(
    block: Place | None,
    environ: Mapping[str, str],
    *,
    within: Place | None = None,
    **arguments: Any,
) -> Settings:
    """Return the settings where the file's block is found already.

    Args:
        block: The block `tools.tool_search`, if there is one.
        environ: The environment.
        within: Another block of the same file, for a part of it, that wins over the first.
        arguments: Settings by name. None stands for one that is not given.

    Raises:
        ConfigError: A key is unknown or a value cannot be used.
    """
    layers = [_located(dict(_from_file(each)), each) for each in (block, within)]
    layers.append(dict(_from_environment(environ)))
    layers.append({key: Given(v, "") for key, v in arguments.items() if v is not None})
    return _merged(layers)


def _located(given: dict[str, Given], block: Place | None) -> dict[str, Given]:
    """Return what a file gives, the file of words read from where it stands."""
    words = given.get("enriched")
    if block is None or words is None or not isinstance(words.value, str):
        return given
    path = Path(words.value).expanduser()
    if words.value in NO_FILE or path.is_absolute():
        return given
    return {**given, "enriched": Given(str(block.path.absolute().parent / path), words.where)}


def _merged(layers: list[dict[str, Given]]) -> Settings:
    values: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    where: dict[str, str] = {}
    for layer in layers:
        for key, given in layer.items():
            value = checked(Settings, key, given)
            where[key] = given.where
            block, _, name = key.rpartition(".")
            if block:
                inner.setdefault(block, {})[name] = value
            elif declared(Settings)[key].united:
                values[key] = (*values.get(key, ()), *value)
            else:
                values[key] = value
    for block, given in inner.items():
        values.setdefault(block, _BLOCKS[block](**given))
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
