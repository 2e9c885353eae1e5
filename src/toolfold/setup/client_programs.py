"""The MCP clients there are: where each keeps its servers, and how it writes an entry.

One table. What `toolfold import` reads, what `toolfold install` writes and what the pages
of the documentation tell people to paste all come from it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from toolfold.errors import ConfigError
from toolfold.settings.check import suggestion
from toolfold.setup import client_notes as notes
from toolfold.setup.editing import Format
from toolfold.tool import Json

__all__ = [
    "CLIENTS",
    "ClientProgram",
    "Launch",
    "Location",
    "Machine",
    "client_named",
    "is_found",
    "locations",
    "user_file",
]

Platform: TypeAlias = Literal["linux", "macos", "windows"]
InstallScope: TypeAlias = Literal["user", "project"]
Pointer: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and the person whose clients are meant."""

    platform: Platform
    home: Path
    project: Path
    """The folder worked in."""

    environ: Mapping[str, str] = field(repr=False)

    @classmethod
    def this(cls) -> Machine:
        """Return the machine that this runs on."""
        names: dict[str, Platform] = {"darwin": "macos", "win32": "windows"}
        return cls(names.get(sys.platform, "linux"), Path.home(), Path.cwd(), os.environ)

    @property
    def applications(self) -> Path:
        """The folder in which applications keep their settings."""
        match self.platform:
            case "macos":
                return self.home / "Library" / "Application Support"
            case "windows":
                return self._named("APPDATA", self.home / "AppData" / "Roaming")
            case _:
                return self.dot_config

    @property
    def dot_config(self) -> Path:
        """`~/.config`, or where the environment puts it."""
        if self.platform == "linux":
            return self._named("XDG_CONFIG_HOME", self.home / ".config")
        return self.home / ".config"

    def _named(self, variable: str, default: Path) -> Path:
        return Path(self.environ.get(variable) or default)

    def folder(self, variable: str, default: str) -> Path:
        """Return a folder of the user's, or where a variable puts it."""
        return self._named(variable, self.home / default)


class Launch(NamedTuple):
    """How a client is to start toolfold."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """One MCP client."""

    id: str
    """What it is called on the command line."""

    title: str
    files: Callable[[Machine], tuple[Path, ...]]
    """Where the user's servers are; the first that exists counts, else the first."""

    after: str
    """What makes it see a change."""

    project_file: str | None = None
    """Where a project's servers are, if it has such a file."""

    format: Format = "json"
    container: Pointer = ("mcpServers",)
    """The keys under which the servers stand."""

    entry: Callable[[Launch], Json] = field(default=lambda launch: _plain(launch))
    """The entry that starts toolfold."""

    http: Callable[[str], Json] | None = field(default=lambda url: {"url": url})
    """The entry that leads to a gateway at an address, if it takes such."""

    is_desktop: bool = True
    """Whether it is started from the desktop, and so knows little of a shell's `PATH`."""

    expands: bool = True
    """Whether it resolves `${…}` in entries itself."""

    timeout: tuple[Literal["timeout", "call_timeout"], float] = ("call_timeout", 1.0)
    """What its `timeout` is for us, and how many of them make a second."""

    more: Callable[[Machine], tuple[Pointer, ...]] = field(default=lambda machine: ())
    """Other places of the user's file with servers of the folder worked in."""

    newer: Pointer | None = None
    """The keys under which newer versions keep the servers, where the file has them."""

    note: str = ""
    """What else a person should know, for its page."""


class Location(NamedTuple):
    """A place where a client keeps servers."""

    client: ClientProgram
    path: Path
    scope: InstallScope
    container: Pointer


def locations(
    client: ClientProgram, machine: Machine, scope: InstallScope | None = None
) -> list[Location]:
    """Return where a client keeps servers: the user's first, then the project's."""
    found: list[Location] = []
    if scope in (None, "user"):
        path = user_file(client, machine)
        found.append(Location(client, path, "user", client.container))
        found += [Location(client, path, "project", more) for more in client.more(machine)]
    if scope in (None, "project") and client.project_file is not None:
        path = machine.project / client.project_file
        found.append(Location(client, path, "project", client.container))
    return found


def user_file(client: ClientProgram, machine: Machine) -> Path:
    """Return the file with the user's servers, or where it would be."""
    files = client.files(machine)
    return next((path for path in files if path.is_file()), files[0])


def is_found(client: ClientProgram, machine: Machine) -> bool:
    """Whether the client seems to be on this machine."""
    return any(
        path.is_file() or (path.parent.is_dir() and path.parent != machine.home)
        for path in client.files(machine)
    )


def client_named(name: str) -> ClientProgram:
    """Return the client that a person means.

    Raises:
        ConfigError: There is none of that name.
    """
    wanted = name.strip().lower().replace(" ", "-").replace("_", "-")
    for client in CLIENTS.values():
        if wanted in (client.id, client.title.lower().replace(" ", "-")):
            return client
    raise ConfigError(
        f"no client is named `{name}`",
        hint=suggestion(wanted, list(CLIENTS)).replace("keys", "clients"),
    )


def _plain(launch: Launch) -> dict[str, Json]:
    entry: dict[str, Json] = {"command": launch.command, "args": list(launch.args)}
    return {**entry, "env": dict(launch.env)} if launch.env else entry


def _typed(launch: Launch) -> dict[str, Json]:
    return {"type": "stdio", **_plain(launch)}


def _claude_code(launch: Launch) -> Json:
    # Else the bridge stands behind a search of Claude Code's own.
    return {**_typed(launch), "alwaysLoad": True}


def _codex(launch: Launch) -> Json:
    # Else a conversation begins without what is not there within a second; and since it never
    # asks for the list again, the first must be whole.
    waiting = launch._replace(args=(*launch.args, "--wait", "15"))
    return {**_plain(waiting), "required": True, "startup_timeout_sec": 60}


def _qwen_code(launch: Launch) -> Json:
    # It has a `tool_search` and a `tool_call` of its own: ours are called something else.
    env = {**launch.env, "TOOLFOLD_BRIDGE_PREFIX": "folded"}
    return {**_plain(launch._replace(env=env)), "alwaysLoadTools": True}


def _copilot(launch: Launch) -> Json:
    return {"type": "local", **_plain(launch), "tools": ["*"]}


def _goose(launch: Launch) -> Json:
    return {
        "name": "toolfold",
        "description": "Search and call the tools of all your MCP servers",
        "type": "stdio",
        "enabled": True,
        "cmd": launch.command,
        "args": list(launch.args),
        "envs": dict(launch.env),
        "timeout": 300,
    }


def _goose_http(url: str) -> Json:
    return {"name": "toolfold", "type": "streamable_http", "enabled": True, "uri": url}


def _opencode(launch: Launch) -> Json:
    entry: dict[str, Json] = {"type": "local", "command": [launch.command, *launch.args]}
    return {**entry, "environment": dict(launch.env)} if launch.env else entry


def _at_home(*names: str) -> Callable[[Machine], tuple[Path, ...]]:
    return lambda machine: tuple(machine.home / name for name in names)


def _in_applications(*names: str) -> Callable[[Machine], tuple[Path, ...]]:
    return lambda machine: tuple(machine.applications / name for name in names)


def _extension_files(first: tuple[str, ...], name: str) -> Callable[[Machine], tuple[Path, ...]]:
    """Return where an extension of VS Code keeps a file, in any of its editors."""
    editors = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")

    def files(machine: Machine) -> tuple[Path, ...]:
        stored = (machine.applications / e / "User" / "globalStorage" / name for e in editors)
        return (*(machine.home / f for f in first), *stored)

    return files


def _this_project(machine: Machine) -> tuple[Pointer, ...]:
    return (("projects", str(machine.project), "mcpServers"),)


CLIENTS: Mapping[str, ClientProgram] = {
    client.id: client
    for client in (
        ClientProgram(
            "claude-desktop",
            "Claude Desktop",
            _in_applications("Claude/claude_desktop_config.json"),
            "quit Claude Desktop and start it again; closing the window is not enough",
            expands=False,
            http=None,
        ),
        ClientProgram(
            "claude-code",
            "Claude Code",
            lambda machine: (machine.folder("CLAUDE_CONFIG_DIR", "") / ".claude.json",),
            "start a new session; `/mcp` shows the servers",
            project_file=".mcp.json",
            entry=_claude_code,
            is_desktop=False,
            more=_this_project,
            note=notes.CLAUDE_CODE,
            http=lambda url: {"type": "http", "url": url, "alwaysLoad": True},
        ),
        ClientProgram(
            "cursor",
            "Cursor",
            _at_home(".cursor/mcp.json"),
            "look under Settings, MCP, and switch the entry off and on if it is not there",
            project_file=".cursor/mcp.json",
        ),
        ClientProgram(
            "vscode",
            "VS Code",
            _in_applications(
                "Code/User/mcp.json", "Code - Insiders/User/mcp.json", "VSCodium/User/mcp.json"
            ),
            "run `MCP: List Servers` and start the entry",
            project_file=".vscode/mcp.json",
            container=("servers",),
            entry=_typed,
            http=lambda url: {"type": "http", "url": url},
        ),
        ClientProgram(
            "codex",
            "Codex",
            lambda machine: (machine.folder("CODEX_HOME", ".codex") / "config.toml",),
            "start a new session; `/mcp` shows the servers",
            project_file=".codex/config.toml",
            format="toml",
            container=("mcp_servers",),
            entry=_codex,
            expands=False,
            note=notes.CODEX,
        ),
        ClientProgram(
            "windsurf",
            "Windsurf",
            _at_home(".codeium/windsurf/mcp_config.json"),
            "press Refresh in the list of MCP servers",
            http=lambda url: {"serverUrl": url},
        ),
        ClientProgram(
            "zed",
            "Zed",
            lambda machine: (
                (machine.applications / "Zed" / "settings.json",)
                if machine.platform == "windows"
                else (machine.dot_config / "zed" / "settings.json",)
            ),
            "look at the servers in the settings of the Agent Panel",
            project_file=".zed/settings.json",
            container=("context_servers",),
            expands=False,
        ),
        ClientProgram(
            "gemini-cli",
            "Gemini CLI",
            _at_home(".gemini/settings.json"),
            "start a new session; `/mcp` shows the servers",
            project_file=".gemini/settings.json",
            is_desktop=False,
            timeout=("call_timeout", 1000.0),
            http=lambda url: {"httpUrl": url},
        ),
        ClientProgram(
            "qwen-code",
            "Qwen Code",
            _at_home(".qwen/settings.json"),
            "start a new session; `/mcp` shows the servers",
            project_file=".qwen/settings.json",
            entry=_qwen_code,
            is_desktop=False,
            timeout=("call_timeout", 1000.0),
            note=notes.QWEN_CODE,
            http=lambda url: {"httpUrl": url, "alwaysLoadTools": True},
        ),
        ClientProgram(
            "cline",
            "Cline",
            _extension_files(
                (".cline/data/settings/cline_mcp_settings.json",),
                "saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            "look under MCP Servers, Configure",
            http=lambda url: {"type": "streamableHttp", "url": url},
        ),
        ClientProgram(
            "roo",
            "Roo Code",
            _extension_files((), "rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
            "look under MCP Servers in its settings",
            project_file=".roo/mcp.json",
            http=lambda url: {"type": "streamable-http", "url": url},
        ),
        ClientProgram(
            "goose",
            "Goose",
            lambda machine: (
                (machine.applications / "Block" / "goose" / "config" / "config.yaml",)
                if machine.platform == "windows"
                else (machine.dot_config / "goose" / "config.yaml",)
            ),
            "start a new session",
            format="yaml",
            container=("extensions",),
            entry=_goose,
            expands=False,
            http=_goose_http,
        ),
        ClientProgram(
            "lm-studio",
            "LM Studio",
            _at_home(".lmstudio/mcp.json"),
            "switch the entry on under Program, Integrations",
            expands=False,
        ),
        ClientProgram(
            "copilot-cli",
            "GitHub Copilot CLI",
            lambda machine: (machine.folder("COPILOT_HOME", ".copilot") / "mcp-config.json",),
            "start a new session; `/mcp show` lists the servers",
            entry=_copilot,
            is_desktop=False,
            timeout=("call_timeout", 1000.0),
            http=lambda url: {"type": "http", "url": url, "tools": ["*"]},
        ),
        ClientProgram(
            "kiro",
            "Kiro",
            _at_home(".kiro/settings/mcp.json"),
            "look under MCP Servers in the Kiro panel",
            project_file=".kiro/settings/mcp.json",
            timeout=("call_timeout", 1000.0),
        ),
        ClientProgram(
            "junie",
            "JetBrains Junie",
            _at_home(".junie/mcp/mcp.json"),
            "look under Settings, Tools, Junie, MCP Settings",
            project_file=".junie/mcp/mcp.json",
            expands=False,
            note="AI Assistant keeps its servers in the IDE's own settings: open Settings, Tools, "
            "AI Assistant, Model Context Protocol, press Add and paste the entry there.",
            http=None,
        ),
        ClientProgram(
            "opencode",
            "OpenCode",
            lambda machine: (
                machine.dot_config / "opencode" / "opencode.json",
                machine.dot_config / "opencode" / "opencode.jsonc",
            ),
            "start a new session",
            project_file="opencode.json",
            container=("mcp",),
            entry=_opencode,
            is_desktop=False,
            expands=False,
            timeout=("call_timeout", 1000.0),
            newer=("mcp", "servers"),
            note="This is the form of version 1, which version 2 reads too. A file that has "
            "`mcp.servers` already gets the entry there.",
            http=lambda url: {"type": "remote", "url": url},
        ),
    )
}
"""The clients, by id, in the order in which their servers are taken over."""
