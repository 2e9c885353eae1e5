"""What the paths on the command line are: catalogs, a configuration, or what was recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolfold.catalog import Catalog
from toolfold.errors import CatalogError, ConfigError, ToolfoldError
from toolfold.evaluation.conversation_file import read_conversation
from toolfold.inspector.audit_reading import is_audit
from toolfold.tool import Tool, is_object

__all__ = ["NamedPaths", "sorted_paths", "tools_of_traffic"]

PathKind = Literal["catalog", "config", "recorded"]

_CONFIGS = (".yaml", ".yml", ".toml")
_SERVERS = ("mcpServers", "servers", "mcp", "openapi", "functions", "serve")
_LOOKED_AT = 1024 * 1024
_FILES_AT_MOST = 400


@dataclass(frozen=True, slots=True)
class NamedPaths:
    """Paths, by what they are."""

    catalogs: tuple[str, ...] = ()
    config: str | None = None
    recorded: tuple[str, ...] = ()


def sorted_paths(paths: Sequence[str]) -> NamedPaths:
    """Return paths by what the files hold.

    Raises:
        CatalogError: A path is not there.
        ConfigError: There are two configurations.
    """
    found: dict[PathKind, list[str]] = {"catalog": [], "config": [], "recorded": []}
    for path in paths:
        found[_kind(path)].append(path)
    configs = found["config"]
    if len(configs) > 1:
        raise ConfigError(
            f"`{configs[0]}` and `{configs[1]}` are both configurations", hint="give one of them"
        )
    config = configs[0] if configs else None
    return NamedPaths(tuple(found["catalog"]), config, tuple(found["recorded"]))


def tools_of_traffic(files: Iterable[Path]) -> Catalog | None:
    """Return the tools that the clients of saved traffic sent; None where none is saved."""
    tools: dict[str, Tool] = {}
    for file in list(files)[:_FILES_AT_MOST]:
        try:
            saved = read_conversation(file).saved
            own = () if saved is None else saved.catalog
        except (ToolfoldError, OSError, ValueError, TypeError, KeyError, RecursionError):
            continue  # the page says of each file what is wrong with it
        for tool in own:
            tools.setdefault(tool.wire_name, tool)
    return Catalog(tools.values()) if tools else None


def _kind(path: str) -> PathKind:
    place = Path(path).expanduser()
    if path == "-":
        return "catalog"
    if place.is_dir():
        return "recorded"
    if not place.is_file():
        raise CatalogError(
            f"there is no `{path}`",
            hint="give a catalog, a configuration, or what was recorded: files or folders",
        )
    if place.suffix in _CONFIGS:
        return "config"
    with place.open(encoding="utf-8-sig", errors="replace") as opened:
        beginning = opened.read(_LOOKED_AT)
    first = next((line for line in beginning.splitlines() if line.strip()), "")
    if '"toolfold_proxy"' in beginning[:200] or '"toolfold_ab"' in beginning[:200]:
        return "recorded"
    if is_audit(first) or _has_role(first):
        return "recorded"
    return "config" if _names_servers(beginning) else "catalog"


def _has_role(line: str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return is_object(value) and "role" in value


def _names_servers(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return is_object(value) and "tools" not in value and any(key in value for key in _SERVERS)
