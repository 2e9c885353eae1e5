"""Servers put into our own configuration and taken out, every other byte left alone."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from toolfold.errors import ConfigError
from toolfold.setup import foreign_files
from toolfold.setup.editing import Format, add, read_text, remove, servers_in
from toolfold.tool import Json

__all__ = ["ConfigChange", "with_server", "without_server", "write"]


class ConfigChange(NamedTuple):
    """A change of our configuration that is not written yet."""

    path: Path
    before: str
    after: str


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
