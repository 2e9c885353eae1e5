"""Servers put into our own configuration and taken out, every other byte left alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from toolfold.config.gateway_config import load_gateway
from toolfold.errors import ConfigError
from toolfold.setup import foreign_files
from toolfold.setup.editing import Format, add, read_text, remove, servers_in
from toolfold.sources.mcp._secret_values import (
    is_secret_argument,
    is_secret_header,
    is_secret_value,
)
from toolfold.tool import Json

__all__ = ["ConfigChange", "check_free", "secrets_of", "with_server", "without_server", "write"]


class ConfigChange(NamedTuple):
    """A change of our configuration that is not written yet."""

    path: Path
    before: str
    after: str


def check_free(path: Path, name: str) -> None:
    """Refuse a name that something else in the file has: no gateway would start with it.

    Args:
        path: The file, which need not exist.
        name: The name of a server that is to be put in.

    Raises:
        ConfigError: Functions or an API are named so, or the file cannot be used as it is.
    """
    if not path.exists():
        return
    config = load_gateway(path, strict=False)
    for key, others in (("functions", config.functions), ("openapi", config.apis)):
        if any(each.name == name for each in others):
            raise ConfigError(
                f"`{path}` has `{key}.{name}` already", hint="choose another name for the server"
            )


def secrets_of(entry: Mapping[str, Json]) -> list[str]:
    """Return where an entry holds what looks like a secret, and not a reference to one.

    Args:
        entry: A server, as a file names it.
    """
    env, headers, args = entry.get("env", {}), entry.get("headers", {}), entry.get("args", [])
    return [
        *(f"`env.{name}`" for name, value in env.items() if is_secret_value(name, value)),
        *(f"`headers.{name}`" for name, value in headers.items() if is_secret_header(name, value)),
        *(f"`args[{place}]`" for place in range(len(args)) if is_secret_argument(args, place)),
    ]


def with_server(path: Path, name: str, entry: dict[str, Json], *, replace: bool) -> ConfigChange:
    """Return a configuration with a server put in.

    Args:
        path: The file, which need not exist.
        name: The server's name.
        entry: The server, as a file names it.
        replace: Whether one of the same name is replaced.

    Raises:
        ConfigError: There is one of that name, or the file cannot be changed without risk.
    """
    before, form = read_text(path), _form(path)
    container = _container(before, form)
    if not replace and name in _servers(before, form, container):
        raise ConfigError(
            f"`{path}` has a server named {name!r} already",
            hint="give --replace to write it anew, or choose another name",
        )
    return ConfigChange(path, before, add(before, form, container, {name: entry}, path))


def without_server(path: Path, name: str) -> ConfigChange:
    """Return a configuration with a server taken out.

    Raises:
        ConfigError: There is none of that name, or the file cannot be changed without risk.
    """
    before, form = read_text(path), _form(path)
    container = _container(before, form)
    if name not in _servers(before, form, container):
        raise ConfigError(
            f"`{path}` has no server named {name!r}", hint="see `toolfold servers list`"
        )
    return ConfigChange(path, before, remove(before, form, container, [name], path))


def write(change: ConfigChange) -> Path | None:
    """Write a change, and return the copy of what was there.

    Raises:
        SetupError: It cannot be written, or the file is another by now.
    """
    copy = foreign_files.back_up(change.path)
    foreign_files.write(change.path, change.after, expected=change.before)
    return copy


def _form(path: Path) -> Format:
    return "json" if path.suffix in (".json", ".jsonc") else "yaml"


def _container(text: str, form: Format) -> tuple[str, ...]:
    usual = ("mcpServers",)
    return (
        ("servers",)
        if _servers(text, form, ("servers",)) and not _servers(text, form, usual)
        else usual
    )


def _servers(text: str, form: Format, container: tuple[str, ...]) -> dict[str, Json]:
    try:
        return servers_in(text, form, container)
    except ValueError:
        return {}  # changing it will say what is wrong, with the line
