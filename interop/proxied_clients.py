"""Claude Code and Codex before the proxy, with an MCP server of many tools of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import office
from coding_clients import KEY, ClaudeCode, OpenCode, QwenCode, Session, changed, program

__all__ = ["ProxiedClaude", "ProxiedCodex", "ProxiedOpenCode", "ProxiedQwen", "office_server"]


@dataclass(frozen=True, slots=True)
class ProxiedClaude:
    """Claude Code, in print mode, without a search of its own."""

    name: str = "claude-code"
    program: str = "claude"
    model: str = "claude-sonnet-4-5"
    more: Mapping[str, str] = field(default_factory=lambda: {"ENABLE_TOOL_SEARCH": "false"})
    options: Sequence[str] = ()

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Write the server down."""
        entry = {"command": sys.executable, "args": list(gateway)}
        file = session.home / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"office": entry}}))

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end, every tool of the server allowed."""
        return [
            *(program(self), "-p", prompt),
            *("--model", session.model),
            *("--mcp-config", str(session.home / "mcp.json"), "--strict-mcp-config"),
            *("--allowedTools", "mcp__office"),
            *self.options,
        ]

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return the variables that point it at the model."""
        return ClaudeCode(more=self.more).environment(session)


@dataclass(frozen=True, slots=True)
class ProxiedCodex:
    """Codex, in `exec`; everything it is told, it is told on the command line."""

    name: str = "codex"
    program: str = "codex"
    model: str = "a-model-of-mine"
    options: Sequence[str] = ()
    """What stands behind `exec`."""

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Write the server down: all else stands on the command line."""
        entry = {"command": sys.executable, "args": list(gateway)}
        lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
        file = session.home / ".codex" / "config.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(["[mcp_servers.office]", *lines, ""]))

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end."""
        provider = {
            "name": "proxied",
            "base_url": f"{session.model_url}/v1",
            "wire_api": "responses",
            "env_key": "SCRIPTED_KEY",
        }
        told = {f"model_providers.proxied.{key}": value for key, value in provider.items()}
        told |= {"model_provider": "proxied", "model": session.model}
        given = [part for k, v in told.items() for part in ("-c", f"{k}={json.dumps(v)}")]
        free = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return [program(self), "exec", *given, *free, *self.options, prompt]

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return its key."""
        return {"SCRIPTED_KEY": KEY}


@dataclass(frozen=True, slots=True)
class ProxiedOpenCode:
    """OpenCode, in `run`, with a provider of one's own."""

    name: str = "opencode"
    program: str = "opencode"
    model: str = "a-model-of-mine"
    options: Sequence[str] = ()

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Write the model's server and ours down."""
        OpenCode().prepare(session, gateway)
        entry = {"type": "local", "command": [sys.executable, *gateway], "enabled": True}
        changed(session.home / ".config" / "opencode" / "opencode.json", mcp={"office": entry})

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end."""
        return [*OpenCode().command(session, prompt), *self.options]

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return what keeps it off the network."""
        return OpenCode().environment(session)


@dataclass(frozen=True, slots=True)
class ProxiedQwen:
    """Qwen Code, in headless mode, its MCP tools shown."""

    name: str = "qwen-code"
    program: str = "qwen"
    model: str = "a-model-of-mine"
    options: Sequence[str] = ()

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Write the server down."""
        QwenCode().prepare(session, gateway)
        entry = {"command": sys.executable, "args": list(gateway), "alwaysLoadTools": True}
        changed(session.home / ".qwen" / "settings.json", mcpServers={"office": entry})

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end, every tool allowed."""
        return [*QwenCode().command(session, prompt), *self.options]

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return the variables that point it at the model."""
        return QwenCode().environment(session)


def office_server(log: Path) -> Sequence[str]:
    """Return what is told to Python to start the server."""
    return [office.SCRIPT, str(log)]
