"""Coding agents as a person runs them, before a scripted model and with an MCP server.

Each knows where its servers are written and how it is pointed at a model. A run has a home
folder and a folder to work in of its own, and an environment in which nothing of this machine
is but the path; it is told to stay away from the network.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gateways import TOOLFOLD, Gateway
from scripted_model import Asked, Play, ScriptedModel
from servers import PARTS

__all__ = [
    "CLIENTS",
    "KEY",
    "ClaudeCode",
    "Cline",
    "Codex",
    "CodingClient",
    "ContinueCli",
    "CopilotCli",
    "GeminiCli",
    "OpenCode",
    "QwenCode",
    "Ran",
    "Session",
    "changed",
    "converse",
    "entry_of",
    "hold",
    "is_installed",
    "program",
    "start",
    "unmarked",
]

_FOLDERS = [
    str(PARTS / folder / "node_modules" / ".bin") for folder in ("programs", "more-programs")
]
KEY = "sk-scripted"
_UNMARKED = str(Path(__file__).with_name("unmarked.py"))


@dataclass(frozen=True, slots=True)
class Session:
    """What a client is started in."""

    home: Path
    work: Path
    model_url: str
    model: str

    @classmethod
    def under(cls, folder: Path, model_url: str, model: str) -> Session:
        """Return one in an empty folder."""
        home, work = folder / "home", folder / "work"
        for path in (home, work):
            path.mkdir(parents=True, exist_ok=True)
        return cls(home, work, model_url, model)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run came to."""

    code: int
    output: str
    complaint: str


class CodingClient(Protocol):
    """One client program."""

    name: str
    """What `toolfold install` calls it, where it knows it."""

    program: str
    """The name of its command."""

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Write what the client needs besides toolfold's entry, which is there already.

        Args:
            session: Where it will run.
            gateway: What starts the gateway, for a client that `toolfold install` does not know.
        """
        ...

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end, every tool allowed."""
        ...

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return the variables that point it at the model."""
        ...


def is_installed(client: CodingClient) -> bool:
    """Whether a client's program is there."""
    return shutil.which(client.program, path=os.pathsep.join(_FOLDERS)) is not None


def program(client: CodingClient) -> str:
    found = shutil.which(client.program, path=os.pathsep.join(_FOLDERS))
    assert found is not None, f"{client.program} is not installed"
    return found


def changed(path: Path, **more: Any) -> None:
    """Put more into a file of JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**content, **more}, indent=2))


def start(client: CodingClient, session: Session, prompt: str) -> subprocess.Popen[str]:
    """Start one prompt, in a process group of its own."""
    env = {"PATH": os.environ["PATH"], "HOME": str(session.home), "LANG": "C.UTF-8"}
    return subprocess.Popen(
        list(client.command(session, prompt)),
        cwd=session.work,
        env={**env, **client.environment(session)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )


def converse(client: CodingClient, session: Session, prompt: str, *, seconds: float = 80) -> Ran:
    """Run one prompt to its end.

    Raises:
        TimeoutError: It did not end in time; it was killed, and what it started with it.
    """
    process = start(client, session, prompt)
    try:
        out, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, complaint = process.communicate()
        raise TimeoutError(
            f"{client.name} did not end:\n{out[-2000:]}\n{complaint[-2000:]}"
        ) from None
    return Ran(process.returncode, out, complaint)


def install(client: CodingClient, session: Session, gateway: Gateway) -> None:
    """Let toolfold write its entry, as a person does."""
    if client.name:
        subprocess.run(
            [TOOLFOLD, "install", client.name, "--config", str(gateway.config)],
            env={"PATH": os.environ["PATH"], "HOME": str(session.home)},
            cwd=session.work,
            check=True,
            capture_output=True,
            timeout=60,
        )
    client.prepare(session, gateway.command)


def hold(
    client: CodingClient,
    gateway: Gateway,
    folder: Path,
    model: str,
    prompt: str,
    play: Play,
    change: Callable[[Session], None] = lambda session: None,
) -> tuple[Ran, list[Asked]]:
    """Hold a conversation and return how it ended and what the model was asked.

    Args:
        client: The client.
        gateway: The gateway that it is given.
        folder: An empty one.
        model: What the model is called.
        prompt: What the user says.
        play: What the model says.
        change: Changes something between the installation and the start.
    """
    with ScriptedModel(play) as scripted:
        session = Session.under(folder, scripted.url, model)
        install(client, session, gateway)
        change(session)
        ran = converse(client, session, prompt)
    return ran, scripted.turns


def entry_of(session: Session) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Return Claude Code's file, what it holds, and toolfold's entry in that."""
    path = session.home / ".claude.json"
    content = json.loads(path.read_text())
    return path, content, content["mcpServers"]["toolfold"]


def unmarked(session: Session) -> None:
    """Take out of Claude Code's file, and of the gateway's list, that tools are to be shown."""
    path, content, entry = entry_of(session)
    del entry["alwaysLoad"]
    entry["args"] = [_UNMARKED, entry["command"], *entry["args"]]
    entry["command"] = sys.executable
    path.write_text(json.dumps(content))


@dataclass(frozen=True, slots=True)
class ClaudeCode:
    """Claude Code, in print mode, over Anthropic's Messages API."""

    name: str = "claude-code"
    program: str = "claude"
    more: Mapping[str, str] = field(default_factory=dict)
    """More of its environment."""

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """There is nothing more."""

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end, every tool of ours allowed."""
        return [
            *(program(self), "-p", prompt),
            *("--model", session.model),
            *("--allowedTools", "mcp__toolfold"),
        ]

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return the variables that point it at the model."""
        return {
            "ANTHROPIC_BASE_URL": session.model_url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Where a machine is slow, it would begin without a server that is not there yet.
            "MCP_CONNECTION_NONBLOCKING": "0",
            "MCP_CONNECT_TIMEOUT_MS": "60000",
            "MCP_TIMEOUT": "60000",
            **self.more,
        }


@dataclass(frozen=True, slots=True)
class Codex:
    """Codex, in `exec`, over OpenAI's Responses API."""

    name: str = "codex"
    program: str = "codex"
    is_free: bool = True
    """Whether it may do anything without asking."""

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Name the model's server, before what the file already holds."""
        path = session.home / ".codex" / "config.toml"
        servers = path.read_text()
        provider = {"name": "scripted", "base_url": f"{session.model_url}/v1"}
        provider |= {"wire_api": "responses", "env_key": "SCRIPTED_KEY"}
        lines = [
            f"model = {json.dumps(session.model)}",
            'model_provider = "scripted"',
            "[model_providers.scripted]",
            *(f"{key} = {json.dumps(value)}" for key, value in provider.items()),
        ]
        path.write_text("\n".join([*lines, "", servers]))

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end."""
        free = ["--dangerously-bypass-approvals-and-sandbox"] if self.is_free else []
        return [program(self), "exec", "--skip-git-repo-check", *free, prompt]

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return the variables that point it at the model."""
        return {"SCRIPTED_KEY": KEY}


@dataclass(frozen=True, slots=True)
class OpenCode:
    """OpenCode, in `run`, over chat completions."""

    name: str = "opencode"
    program: str = "opencode"

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Name the model's server, and allow every tool."""
        model = {"name": session.model, "tool_call": True}
        model["limit"] = {"context": 200_000, "output": 8_000}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"{session.model_url}/v1", "apiKey": KEY},
            "models": {session.model: model},
        }
        changed(
            session.home / ".config" / "opencode" / "opencode.json",
            provider={"scripted": provider},
            model=f"scripted/{session.model}",
            permission={"*": "allow"},
            autoupdate=False,
            share="disabled",
        )

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end."""
        return [program(self), "run", prompt]

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return what keeps it off the network."""
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}


@dataclass(frozen=True, slots=True)
class GeminiCli:
    """Gemini CLI, in headless mode, over Google's API."""

    name: str = "gemini-cli"
    program: str = "gemini"

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Choose the key as the way to sign in."""
        sign_in = {"auth": {"selectedType": "gemini-api-key"}}
        changed(session.home / ".gemini" / "settings.json", security=sign_in)

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end, every tool allowed."""
        return [program(self), "-p", prompt, "--yolo", "-m", "gemini-2.5-pro"]

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return the variables that point it at the model."""
        return {
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": session.model_url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }


@dataclass(frozen=True, slots=True)
class QwenCode:
    """Qwen Code, in headless mode, over chat completions."""

    name: str = "qwen-code"
    program: str = "qwen"

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Choose the key as the way to sign in."""
        sign_in = {"auth": {"selectedType": "openai"}}
        changed(session.home / ".qwen" / "settings.json", security=sign_in)

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end, every tool allowed."""
        return [program(self), "-p", prompt, "--yolo"]

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return the variables that point it at the model."""
        url = f"{session.model_url}/v1"
        return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url, "OPENAI_MODEL": session.model}


@dataclass(frozen=True, slots=True)
class CopilotCli:
    """GitHub Copilot CLI, with a provider of one's own, over chat completions."""

    name: str = "copilot-cli"
    program: str = "copilot"

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """There is nothing more."""

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end, every tool allowed."""
        return [program(self), "-p", prompt, "--allow-all-tools", "--no-color"]

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return the variables that point it at the model."""
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{session.model_url}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": session.model,
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }


@dataclass(frozen=True, slots=True)
class Cline:
    """Cline's command line, over chat completions. It ends when a tool of its own is called."""

    name: str = "cline"
    program: str = "cline"

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Sign in."""
        env = {"PATH": os.environ["PATH"], "HOME": str(session.home)}
        given = ["-p", "openai", "-k", KEY, "-m", session.model, "-b", f"{session.model_url}/v1"]
        subprocess.run(
            [program(self), "auth", *given],
            cwd=session.work,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=60,
        )

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end, every tool allowed."""
        return [program(self), "--yolo", prompt]

    def environment(self, session: Session) -> Mapping[str, str]:
        """There is nothing more."""
        return {}


@dataclass(frozen=True, slots=True)
class ContinueCli:
    """Continue's command line, over chat completions. `toolfold install` does not know it."""

    name: str = ""
    program: str = "cn"

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """Write its configuration, with the server."""
        command, *arguments = gateway
        model = {"name": session.model, "provider": "openai", "model": session.model}
        model |= {"apiKey": KEY, "apiBase": f"{session.model_url}/v1"}
        model |= {"capabilities": ["tool_use"], "roles": ["chat"]}
        changed(
            session.home / "continue.yaml",  # JSON is YAML
            name="scripted",
            version="1.0.0",
            schema="v1",
            models=[model],
            mcpServers=[{"name": "toolfold", "command": command, "args": arguments}],
        )

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        """Return what runs one prompt to its end, every tool allowed."""
        config = str(session.home / "continue.yaml")
        return [program(self), "-p", prompt, "--config", config, "--auto"]

    def environment(self, session: Session) -> Mapping[str, str]:
        """There is nothing more."""
        return {}


CLIENTS: Sequence[CodingClient] = (
    ClaudeCode(),
    Codex(),
    OpenCode(),
    GeminiCli(),
    QwenCode(),
    CopilotCli(),
    Cline(),
    ContinueCli(),
)
