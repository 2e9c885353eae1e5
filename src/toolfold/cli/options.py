"""Options that several commands share: the same flag means the same thing everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from toolfold.catalog import Catalog
from toolfold.errors import UnknownToolError
from toolfold.scope import Scope
from toolfold.settings import Settings, load_settings
from toolfold.sources.files import load_catalog, read_entries
from toolfold.tool import Tool
from toolfold.wire import Entry

__all__ = ["catalog_option", "config_option", "json_option", "scope_options"]

F = TypeVar("F", bound=Callable[..., Any])

catalog_option = click.option(
    "--catalog",
    metavar="FILE",
    help="Tools in JSON or JSON lines, any wire shape; - for standard input  "
    "[default: the bundled demo catalog]",
)
config_option = click.option(
    "-c", "--config", metavar="FILE", help="Read this file instead of ./toolfold.yaml"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object")


def scope_options(function: F) -> F:
    """Add `--allow` and `--deny`."""
    deny = click.option(
        "--deny", metavar="PATTERN", multiple=True,
        help="Leave matching tools out; repeatable, wins over --allow",
    )  # fmt: skip
    allow = click.option(
        "--allow", metavar="PATTERN", multiple=True,
        help="Keep only matching tools; @NAME matches a toolset; repeatable",
    )  # fmt: skip
    return allow(deny(function))


def open_catalog(file: str | None, allow: tuple[str, ...], deny: tuple[str, ...]) -> Catalog:
    """Return the catalog of a file, or the bundled one, within a scope."""
    from toolfold.demo import demo_catalog

    catalog = demo_catalog() if file is None else load_catalog(file)
    return catalog.within(Scope(allow or ("*",), deny))


def open_entries(file: str | None) -> list[Entry]:
    """Return the entries of a file, or of the bundled catalog, as they came in."""
    from toolfold.demo import CATALOG_FILE

    return read_entries(CATALOG_FILE if file is None else file)


def open_settings(config: str | None, **arguments: Any) -> Settings:
    """Return the settings of a file, with the command line's own over them."""
    return load_settings(config, **arguments)


def tool_named(catalog: Catalog, name: str) -> Tool:
    """Return the tool that a person means by a name.

    Raises:
        UnknownToolError: There is none in the scope.
    """
    tool = catalog.find(name)
    if tool is None:
        raise UnknownToolError(name, near=catalog.near(name))
    return tool


def print_json(value: Any) -> None:
    """Print one JSON object, readable on a terminal and one line in a pipe."""
    import sys

    indent = 2 if sys.stdout.isatty() else None
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    # Half a character (a lone surrogate from a stranger's file) fits no encoding.
    click.echo(text.encode("utf-8", "replace").decode())


def bold(text: str) -> str:
    """Return text that stands out on a terminal."""
    return click.style(text, bold=True)


def dim(text: str) -> str:
    """Return text that stands back on a terminal."""
    return click.style(text, dim=True)
