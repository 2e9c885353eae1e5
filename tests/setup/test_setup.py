"""Setting the gateway up: clients' servers taken over, toolfold entered and taken out again."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from toolfold import ConfigError
from toolfold.cli import call, import_, install
from toolfold.cli import list as list_command
from toolfold.config import load_gateway, user_config
from toolfold.errors import MissingExtraError, ToolfoldError
from toolfold.setup.client_programs import (
    CLIENTS,
    ClientProgram,
    Machine,
    Platform,
    client_named,
    locations,
)
from toolfold.setup.editing import EditError, add, remove, servers_in
from toolfold.setup.importing import apply as apply_import
from toolfold.setup.importing import plan_import
from toolfold.setup.installing import apply, own_command, plan_install, plan_removal

GITHUB = "ghp_abcdefghijklmnop1234"
BEARER = "Bearer sk-live-abcdef0123456789"

CLAUDE_DESKTOP = f"""\
{{
  "globalShortcut": "",
  "mcpServers": {{
    "github": {{
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": {{"GITHUB_PERSONAL_ACCESS_TOKEN": "{GITHUB}", "LOG": "info"}}
    }},
    "files": {{"command": "npx", "args": ["-y", "files", "${{DATA}}"]}}
  }}
}}
"""
CLAUDE_CODE = """\
{
  "numStartups": 41,
  "projects": {
    "HERE": {"mcpServers": {"db": {"type": "stdio", "command": "db-mcp", "args": [], "env": {}}}},
    "/elsewhere": {"mcpServers": {"x": {"command": "x"}, "y": {"command": "y"}}}
  },
  "mcpServers": {
    "sentry": {"type": "http", "url": "https://mcp.sentry.example/mcp"}
  }
}
"""
PROJECT_MCP = """\
{"mcpServers": {"here": {"command": "./server", "args": ["${ROOT:-.}"]}}}
"""
CURSOR = f"""\
{{
  // what I use
  "mcpServers": {{
    "github": {{
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": {{"LOG": "info", "GITHUB_PERSONAL_ACCESS_TOKEN": "{GITHUB}"}},
    }},
    "files": {{"command": "npx", "args": ["-y", "files", "/other"]}}, // another folder
    "web": {{"url": "https://web.example/sse", "headers": {{"Authorization": "{BEARER}"}}}},
  }},
}}
"""
VSCODE = """\
{
\t"inputs": [{"type": "promptString", "id": "pplx-key", "password": true}],
\t"servers": {
\t\t"pplx": {
\t\t\t"type": "stdio", "command": "npx", "args": ["-y", "pplx"],
\t\t\t"env": {"KEY": "${input:pplx-key}", "DIR": "${workspaceFolder}/x", "E": "${env:EE}"}
\t\t}
\t}
}
"""
CODEX = """\
model = "gpt-5" # keep this

[mcp_servers.docs]
command = "docs-server"
args = ["--api-key", "plain-word-key"]
env_vars = ["LANG"]
startup_timeout_sec = 20
tool_timeout_sec = 40
enabled_tools = ["search"]

[mcp_servers.figma]
url = "https://mcp.figma.example/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Region" = "eu-west" }

[tui]
theme = "x"
"""
WINDSURF = """\
{"mcpServers": {"zap": {"serverUrl": "https://a.example/api/v1/s/mFk29sLq81Zx0PwT73Bd/sse"}}}
"""
ZED = """\
// Zed settings
{
  "theme": "One Dark",
  "context_servers": {
    "old": {"command": {"path": "node", "args": ["a.js", "--token=plainword"], "env": {}}},
    "extension": {"source": "extension", "settings": {}}
  }
}
"""
GEMINI = """\
{"theme": "Dracula", "mcpServers": {"remote": {
  "httpUrl": "https://r.example/sse", "headers": {"X-Api-Key": "$MY_KEY"}, "timeout": 30000,
  "excludeTools": ["wipe"], "trust": false}}}
"""
QWEN = """\
{"mcpServers": {"q": {"command": "q", "timeout": 30000, "alwaysLoadTools": true}}}
"""
CLINE = """\
{"mcpServers": {"weather": {"command": "w", "disabled": true, "autoApprove": [], "timeout": 60}}}
"""
ROO = """\
{"mcpServers": {"sse": {"type": "streamable-http", "url": "https://roo.example/x"}}}
"""
GOOSE = """\
GOOSE_MODEL: some-model # mine
extensions:
  developer:
    enabled: true
    type: builtin
    name: developer
  # fetches pages
  fetch:
    enabled: true
    type: stdio
    name: fetch
    cmd: uvx
    args: [mcp-server-fetch]
    envs: {}
    env_keys: [FETCH_KEY]
    timeout: 300

# the end
GOOSE_MODE: auto
"""
LM_STUDIO = '{"mcpServers": {"hf": {"url": "https://hf.example/mcp"}}}\n'
COPILOT = '{"mcpServers": {"pw": {"type": "local", "command": "pw", "args": [], "tools": ["*"]}}}\n'
KIRO = '{"mcpServers": {"k": {"command": "k", "disabledTools": ["a"], "timeout": 60000}}}\n'
JUNIE = '{"mcpServers": {"j": {"command": "j"}}}\n'
OPENCODE = """\
{"$schema": "x", "mcp": {
  "local": {"type": "local", "command": ["bun", "x", "srv"], "environment": {"K": "{env:KK}"}},
  "off": {"type": "remote", "url": "https://o.example/mcp", "enabled": false}}}
"""
OPENCODE_2 = """\
{"mcp": {"servers": {"local": {"type": "local", "command": ["bun", "x", "srv"]}}}}
"""

FILES = {
    "claude-desktop": CLAUDE_DESKTOP,
    "claude-code": CLAUDE_CODE,
    "cursor": CURSOR,
    "vscode": VSCODE,
    "codex": CODEX,
    "windsurf": WINDSURF,
    "zed": ZED,
    "gemini-cli": GEMINI,
    "qwen-code": QWEN,
    "cline": CLINE,
    "roo": ROO,
    "goose": GOOSE,
    "lm-studio": LM_STUDIO,
    "copilot-cli": COPILOT,
    "kiro": KIRO,
    "junie": JUNIE,
    "opencode": OPENCODE,
}


def machine_at(folder: Path, platform: Platform = "linux") -> Machine:
    home, project = folder / "home", folder / "home" / "work"
    project.mkdir(parents=True, exist_ok=True)
    return Machine(platform, home, project, {"HOME": str(home), "PATH": os.environ["PATH"]})


def user_path(client: ClientProgram, machine: Machine) -> Path:
    return client.files(machine)[0]


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def furnished(folder: Path, *names: str) -> Machine:
    """A machine with the files of these clients, or of all."""
    machine = machine_at(folder)
    for name in names or FILES:
        text = FILES[name].replace("HERE", str(machine.project))
        put(user_path(CLIENTS[name], machine), text)
    return machine


def imported(machine: Machine, *names: str, target: Path | None = None) -> Any:
    clients = [CLIENTS[name] for name in names] if names else list(CLIENTS.values())
    path = target or machine.home / ".config" / "toolfold" / "toolfold.yaml"
    plan = plan_import(machine, clients, path, project=True)
    apply_import(plan)
    return plan


def parsed(text: str, client: ClientProgram) -> Any:
    """What a client's own parser would read, by parsers that are not ours."""
    if client.format == "toml":
        return tomllib.loads(text)
    if client.format == "yaml":
        return yaml.safe_load(text)
    strings = r'("(?:[^"\\]|\\.)*")'
    bare = re.sub(strings + r"|//[^\n]*|/\*.*?\*/", lambda m: m[1] or " ", text, flags=re.DOTALL)
    bare = re.sub(strings + r"|,(\s*[}\]])", lambda m: m[1] or m[2], bare)
    return json.loads(bare.removeprefix("\ufeff"))


# ---- where clients keep their files


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        (
            "linux",
            {
                "claude-desktop": ".config/Claude/claude_desktop_config.json",
                "vscode": ".config/Code/User/mcp.json",
                "zed": ".config/zed/settings.json",
                "goose": ".config/goose/config.yaml",
                "codex": ".codex/config.toml",
            },
        ),
        (
            "macos",
            {
                "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
                "vscode": "Library/Application Support/Code/User/mcp.json",
                "zed": ".config/zed/settings.json",
                "goose": ".config/goose/config.yaml",
                "cursor": ".cursor/mcp.json",
            },
        ),
        (
            "windows",
            {
                "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
                "vscode": "AppData/Roaming/Code/User/mcp.json",
                "zed": "AppData/Roaming/Zed/settings.json",
                "goose": "AppData/Roaming/Block/goose/config/config.yaml",
                "windsurf": ".codeium/windsurf/mcp_config.json",
            },
        ),
    ],
)
def test_every_platform_has_its_places(
    tmp_path: Path, platform: Platform, expected: dict[str, str]
) -> None:
    machine = machine_at(tmp_path, platform)

    found = {
        name: user_path(CLIENTS[name], machine).relative_to(machine.home).as_posix()
        for name in expected
    }

    assert found == expected


def test_variables_move_the_files(tmp_path: Path) -> None:
    places = {
        "XDG_CONFIG_HOME": "/x",
        "CODEX_HOME": "/c",
        "CLAUDE_CONFIG_DIR": "/cc",
        "COPILOT_HOME": "/cp",
    }
    machine = Machine("linux", tmp_path, tmp_path, places)

    found = [
        str(user_path(CLIENTS[n], machine)) for n in ("zed", "codex", "claude-code", "copilot-cli")
    ]

    assert found == [
        "/x/zed/settings.json",
        "/c/config.toml",
        "/cc/.claude.json",
        "/cp/mcp-config.json",
    ]


def test_a_client_is_found_by_its_id_or_its_name() -> None:
    assert client_named("cursor") is client_named("Cursor") is CLIENTS["cursor"]
    assert client_named("Claude Desktop").id == "claude-desktop"
    with pytest.raises(ConfigError) as caught:
        client_named("curser")
    assert (caught.value.message, caught.value.hint) == (
        "no client is named `curser`",
        "did you mean `cursor`?",
    )


# ---- taking over


def test_every_clients_servers_come_over_in_our_words(tmp_path: Path) -> None:
    machine = furnished(tmp_path)
    put(machine.project / ".mcp.json", PROJECT_MCP)
    here = str(machine.project)

    plan = imported(machine)

    ours = yaml.safe_load(plan.target.read_text("utf-8"))["mcpServers"]
    desktop = "~/.config/Claude/claude_desktop_config.json"
    assert ours == {
        "github": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-github"],
            "env": {
                "GITHUB_PERSONAL_ACCESS_TOKEN": (
                    f"${{file:{desktop}#/mcpServers/github/env/GITHUB_PERSONAL_ACCESS_TOKEN}}"
                ),
                "LOG": "info",
            },
        },
        # Claude Desktop resolves nothing, so what it has is no reference here either.
        "files": {"command": "npx", "args": ["-y", "files", "$${DATA}"]},
        "sentry": {"url": "https://mcp.sentry.example/mcp"},
        "db": {"command": "db-mcp", "cwd": here},
        "here": {"command": "./server", "args": ["${ROOT:-.}"], "cwd": here},
        "files-cursor": {"command": "npx", "args": ["-y", "files", "/other"]},
        "web": {
            "url": "https://web.example/sse",
            "headers": {
                "Authorization": "${file:~/.cursor/mcp.json#/mcpServers/web/headers/Authorization}"
            },
        },
        "pplx": {
            "command": "npx",
            "args": ["-y", "pplx"],
            "env": {"KEY": "${PPLX_KEY}", "DIR": "${workspaceFolder}/x", "E": "${env:EE}"},
        },
        "docs": {
            "command": "docs-server",
            "args": ["--api-key", "${file:~/.codex/config.toml#/mcp_servers/docs/args/1}"],
            "env": {"LANG": "${LANG:-}"},
            "timeout": 20,
            "call_timeout": 40,
            "allow": ["search"],
        },
        "figma": {
            "url": "https://mcp.figma.example/mcp",
            "headers": {
                "Authorization": "Bearer ${FIGMA_TOKEN}",
                "X-Region": "${file:~/.codex/config.toml#/mcp_servers/figma/http_headers/X-Region}",
            },
        },
        "zap": {
            "url": "${file:~/.codeium/windsurf/mcp_config.json#/mcpServers/zap/serverUrl}",
        },
        "old": {
            "command": "node",
            "args": [
                "a.js",
                "${file:~/.config/zed/settings.json#/context_servers/old/command/args/1}",
            ],
        },
        "remote": {
            "type": "http",
            "url": "https://r.example/sse",
            "headers": {"X-Api-Key": "${MY_KEY}"},
            "call_timeout": 30,
            "deny": ["wipe"],
        },
        "q": {"command": "q", "call_timeout": 30},
        "weather": {"command": "w", "disabled": True, "call_timeout": 60},
        "sse": {"url": "https://roo.example/x"},
        "fetch": {
            "command": "uvx",
            "args": ["mcp-server-fetch"],
            "env": {"FETCH_KEY": "${FETCH_KEY}"},
            "call_timeout": 300,
        },
        "hf": {"url": "https://hf.example/mcp"},
        "pw": {"command": "pw"},
        "k": {"command": "k", "call_timeout": 60, "deny": ["a"]},
        "j": {"command": "j"},
        "local": {"command": "bun", "args": ["x", "srv"], "env": {"K": "${KK}"}},
        "off": {"url": "https://o.example/mcp", "disabled": True},
    }
    assert plan.elsewhere == 2
    assert plan.variables == ("PPLX_KEY", "FETCH_KEY")


def test_no_secret_is_in_the_file_that_is_written(tmp_path: Path) -> None:
    machine = furnished(tmp_path)

    plan = imported(machine)

    text = plan.target.read_text("utf-8")
    for secret in (GITHUB, BEARER, "plain-word-key", "mFk29sLq81Zx0PwT73Bd", "plainword"):
        assert secret not in text
        assert secret not in repr(plan)


def test_what_was_taken_over_loads_with_its_secrets_in_place(tmp_path: Path) -> None:
    machine = furnished(tmp_path)
    plan = imported(machine)
    environ = {**machine.environ, "PPLX_KEY": "p", "FETCH_KEY": "f", "EE": "e", "FIGMA_TOKEN": "t"}
    environ |= {"MY_KEY": "m", "KK": "k"}

    config = load_gateway(plan.target, environ)

    servers = {server.name: server for server in config.servers}
    assert servers["github"].env["GITHUB_PERSONAL_ACCESS_TOKEN"] == GITHUB
    assert servers["web"].headers == {"Authorization": BEARER}
    assert servers["web"].transport == "sse"
    assert servers["docs"].args == ("--api-key", "plain-word-key")
    assert servers["files"].args == ("-y", "files", "${DATA}")
    assert servers["zap"].url == "https://a.example/api/v1/s/mFk29sLq81Zx0PwT73Bd/sse"
    assert servers["old"].args == ("a.js", "--token=plainword")
    assert servers["figma"].headers == {"Authorization": "Bearer t", "X-Region": "eu-west"}
    assert config.disabled == ("weather", "off")


def test_taking_over_twice_changes_nothing(tmp_path: Path) -> None:
    machine = furnished(tmp_path)
    first = imported(machine)

    again = imported(machine)

    assert again.added == ()
    assert again.after == first.after


def test_the_same_server_is_taken_once_and_another_gets_a_name_of_its_own(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "claude-desktop", "cursor")
    put(machine.project / ".cursor/mcp.json", '{"mcpServers": {"files": {"command": "third"}}}')

    plan = imported(machine)

    assert [(t.location.client.id, t.candidate.name, t.name, t.is_new) for t in plan.taken] == [
        ("claude-desktop", "github", "github", True),
        ("claude-desktop", "files", "files", True),
        ("cursor", "github", "github", False),
        ("cursor", "files", "files-cursor", True),
        ("cursor", "web", "web", True),
        ("cursor", "files", "files-cursor-2", True),
    ]


def test_what_stands_in_our_file_stays_with_its_comments(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "lm-studio", "junie")
    before = """\
# mine
serve:
  mode: reveal # yes
mcpServers:
  # the first
  j: {command: j}   # by hand
  hf:
    command: other

tools: # the end
  tool_search: {enabled: on}
"""
    target = put(tmp_path / "toolfold.yaml", before)

    plan = imported(machine, target=target)

    assert target.read_text("utf-8") == before.replace(
        "    command: other\n",
        "    command: other\n  hf-lm-studio:\n    url: https://hf.example/mcp\n",
    )
    assert target.with_name("toolfold.yaml.before-toolfold").read_text("utf-8") == before
    assert [item.name for item in plan.added] == ["hf-lm-studio"]


def test_a_json_file_is_added_to_as_well(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "junie")
    target = put(tmp_path / "mcp.json", '{\n  // mine\n  "servers": {"a": {"command": "x"}}\n}\n')

    imported(machine, target=target)

    assert target.read_text("utf-8") == (
        '{\n  // mine\n  "servers": {"a": {"command": "x"}, "j": {"command": "j"}}\n}\n'
    )


def test_toolfold_is_never_taken_over(tmp_path: Path) -> None:
    entries = {
        "toolfold": {"command": "/x/bin/toolfold", "args": ["serve", "--config", "/c"]},
        "b": {"command": "uvx", "args": ["--from", "toolfold[mcp]", "toolfold", "serve"]},
        "c": {"command": "C:\\py\\python.exe", "args": ["-m", "toolfold", "serve"]},
    }
    machine = machine_at(tmp_path)
    put(user_path(CLIENTS["cursor"], machine), json.dumps({"mcpServers": entries}))
    over_http = {"mcpServers": {"toolfold": {"url": "http://127.0.0.1:8765/mcp"}}}
    put(user_path(CLIENTS["kiro"], machine), json.dumps(over_http))

    plan = imported(machine)

    assert plan.taken == ()
    assert [found.has_toolfold for found in plan.found] == [True, True]
    assert not plan.target.exists()


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_taken(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "junie")
    put(user_path(CLIENTS["cursor"], machine), '{"mcpServers": {\n"a" "b"}}')
    put(user_path(CLIENTS["codex"], machine), "[mcp_servers\n")

    plan = imported(machine)

    assert {f.location.client.id: f.problem for f in plan.found} == {
        "cursor": "it is not JSON, line 2",
        "codex": "it is not TOML",
        "junie": "",
    }
    assert [item.name for item in plan.added] == ["j"]


def test_the_newer_form_of_opencode_is_read_and_written(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    path = put(user_path(CLIENTS["opencode"], machine), OPENCODE_2)
    config = imported(machine).target

    apply(plan_install(machine, CLIENTS["opencode"], config))

    assert list(json.loads(path.read_text("utf-8"))["mcp"]["servers"]) == ["local", "toolfold"]


# ---- entering


@pytest.mark.parametrize("name", sorted(FILES))
def test_entering_adds_one_entry_and_undoing_gives_the_very_bytes_back(
    tmp_path: Path, name: str
) -> None:
    machine = furnished(tmp_path)
    client = CLIENTS[name]
    config = imported(machine).target
    path = user_path(client, machine)
    path.chmod(0o640)
    original = path.read_bytes()

    apply(plan_install(machine, client, config))

    after = parsed(path.read_text("utf-8"), client)
    for key in client.container:
        after = after[key]
    entry = after.pop("toolfold")
    before: Any = parsed(original.decode(), client)
    for key in client.container:
        before = before[key]
    assert after == before
    assert str(config) in json.dumps(entry)
    assert own_command()[0] in json.dumps(entry)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.with_name(f"{path.name}.before-toolfold").read_bytes() == original

    apply(plan_removal(machine, client))

    assert path.read_bytes() == original


@pytest.mark.parametrize("name", sorted(FILES))
def test_only_takes_the_others_out_and_undoing_brings_them_back(tmp_path: Path, name: str) -> None:
    machine = furnished(tmp_path)
    client = CLIENTS[name]
    config = imported(machine).target
    path = user_path(client, machine)
    original = path.read_bytes()
    environ = {**machine.environ, "PPLX_KEY": "p", "FETCH_KEY": "f", "EE": "e", "FIGMA_TOKEN": "t"}
    environ |= {"MY_KEY": "m", "KK": "k"}
    servers = load_gateway(config, environ).servers

    change = plan_install(machine, client, config, only=True)
    apply(change)

    left = servers_in(path.read_text("utf-8"), client.format, client.container)
    assert not set(change.gone) & set(left)
    assert "toolfold" in left
    # What our configuration refers to is still there.
    assert load_gateway(config, environ).servers == servers

    undone = plan_removal(machine, client)
    apply(undone)

    assert path.read_bytes() == original
    assert undone.back == change.gone


@pytest.mark.parametrize("name", sorted(FILES))
def test_entered_twice_the_second_time_with_only_one_undo_gives_everything_back(
    tmp_path: Path, name: str
) -> None:
    machine = furnished(tmp_path)
    client = CLIENTS[name]
    config = imported(machine).target
    path = user_path(client, machine)
    original, ours = path.read_bytes(), config.read_bytes()

    apply(plan_install(machine, client, config))
    apply(plan_install(machine, client, config, only=True))
    apply(plan_removal(machine, client))

    assert path.read_bytes() == original
    assert config.read_bytes() == ours
    assert not plan_removal(machine, client).is_needed


def test_an_entry_that_was_renewed_is_gone_after_one_undo(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "cursor")
    client = CLIENTS["cursor"]
    config = imported(machine).target
    other = config.with_name("other.yaml")
    other.write_bytes(config.read_bytes())
    path = user_path(client, machine)
    original = path.read_bytes()

    apply(plan_install(machine, client, config))
    apply(plan_install(machine, client, other))
    apply(plan_removal(machine, client))

    assert path.read_bytes() == original


def test_only_is_refused_where_a_server_would_be_lost(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "cursor", "junie")
    config = imported(machine, "junie").target
    before = user_path(CLIENTS["cursor"], machine).read_bytes()

    with pytest.raises(ConfigError) as caught:
        plan_install(machine, CLIENTS["cursor"], config, only=True)

    assert caught.value.message == f"`github`, `files`, `web` of Cursor are not in `{config}`"
    assert caught.value.hint == "run `toolfold import --from cursor` first"
    assert user_path(CLIENTS["cursor"], machine).read_bytes() == before


def test_without_only_the_servers_that_still_start_are_named(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "cursor")
    config = imported(machine).target

    change = plan_install(machine, CLIENTS["cursor"], config)

    assert change.others == ("github", "files", "web")
    assert change.gone == ()


def test_a_file_that_was_not_there_is_gone_again(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "junie")
    config = imported(machine).target
    path = user_path(CLIENTS["cursor"], machine)

    apply(plan_install(machine, CLIENTS["cursor"], config))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    apply(plan_removal(machine, CLIENTS["cursor"]))

    assert not path.exists()


def test_what_was_changed_since_is_kept_when_undoing(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "cursor")
    client = CLIENTS["cursor"]
    config = imported(machine).target
    path = user_path(client, machine)
    apply(plan_install(machine, client, config, only=True))
    text = path.read_text("utf-8").replace("// what I use", "// changed since")
    path.write_text(text, "utf-8")

    change = plan_removal(machine, client)
    apply(change)

    assert parsed(path.read_text("utf-8"), client) == {"mcpServers": {}}
    assert "// changed since" in path.read_text("utf-8")
    assert change.kept_in == path.with_name("mcp.json.before-toolfold")


def test_entering_twice_changes_nothing_and_makes_no_second_copy(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "cursor")
    config = imported(machine).target
    path = user_path(CLIENTS["cursor"], machine)
    apply(plan_install(machine, CLIENTS["cursor"], config))

    again = plan_install(machine, CLIENTS["cursor"], config)

    assert not again.is_needed
    assert [p.name for p in sorted(path.parent.iterdir())] == [
        "mcp.json",
        "mcp.json.before-toolfold",
    ]


def test_an_older_copy_is_never_written_over(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "cursor")
    config = imported(machine).target
    path = user_path(CLIENTS["cursor"], machine)
    older = put(path.with_name("mcp.json.before-toolfold"), "older")

    copy = apply(plan_install(machine, CLIENTS["cursor"], config))

    assert older.read_text("utf-8") == "older"
    assert copy == path.with_name("mcp.json.before-toolfold.1")
    assert copy is not None
    assert copy.read_text("utf-8") == CURSOR


def test_a_file_that_another_program_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "cursor")
    config = imported(machine).target
    path = user_path(CLIENTS["cursor"], machine)
    change = plan_install(machine, CLIENTS["cursor"], config)
    path.write_text("{}", "utf-8")

    with pytest.raises(ToolfoldError, match="was changed by another program meanwhile"):
        apply(change)

    assert path.read_text("utf-8") == "{}"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "cursor")
    config = imported(machine).target
    path = user_path(CLIENTS["cursor"], machine)
    kept = tmp_path / "dotfiles.json"
    path.rename(kept)
    path.symlink_to(kept)

    apply(plan_install(machine, CLIENTS["cursor"], config))

    assert path.is_symlink()
    assert "toolfold" in parsed(kept.read_text("utf-8"), CLIENTS["cursor"])["mcpServers"]


def test_files_of_the_folder_are_left_alone_unless_asked_for(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    put(machine.project / ".mcp.json", PROJECT_MCP)
    target = tmp_path / "toolfold.yaml"

    assert plan_import(machine, CLIENTS.values(), target).taken == ()
    assert plan_import(machine, CLIENTS.values(), target, project=True).taken != ()


def test_a_project_has_a_file_of_its_own(tmp_path: Path) -> None:
    machine = furnished(tmp_path, "cursor")
    config = imported(machine).target

    apply(plan_install(machine, CLIENTS["cursor"], config, scope="project"))

    assert "toolfold" in (machine.project / ".cursor/mcp.json").read_text("utf-8")
    with pytest.raises(ConfigError, match="Windsurf has no file for a project"):
        plan_install(machine, CLIENTS["windsurf"], config, scope="project")


def test_a_desktop_client_is_given_the_path_where_a_command_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = machine_at(tmp_path)
    bin_folder = tmp_path / "bin"
    put(bin_folder / "npx-of-mine", "#!/bin/sh\n").chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_folder))
    machine = Machine("macos", machine.home, machine.project, {"PATH": str(bin_folder)})
    config = put(tmp_path / "toolfold.yaml", "mcpServers: {a: {command: npx-of-mine}}\n")

    desktop = plan_install(machine, CLIENTS["claude-desktop"], config)
    terminal = plan_install(machine, CLIENTS["claude-code"], config)

    assert desktop.entry["env"] == {"PATH": str(bin_folder)}
    assert "env" not in terminal.entry


def test_clients_with_a_search_of_their_own_are_told_to_show_the_tools(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    config = put(tmp_path / "toolfold.yaml", "mcpServers: {}\n")

    claude = plan_install(machine, CLIENTS["claude-code"], config)
    codex = plan_install(machine, CLIENTS["codex"], config)
    qwen = plan_install(machine, CLIENTS["qwen-code"], config)

    assert claude.entry["alwaysLoad"] is True
    assert qwen.entry["alwaysLoadTools"] is True
    assert qwen.entry["env"] == {"TOOLFOLD_BRIDGE_PREFIX": "folded"}
    assert codex.entry["required"] is True
    assert codex.entry["startup_timeout_sec"] == 60


def test_the_command_is_absolute_and_there() -> None:
    command, *_ = own_command()

    assert Path(command).is_absolute()
    assert Path(command).is_file()


def test_a_single_runs_command_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/home-of-me/.cache/uv/archive-v0/abc")
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin-of-me/{name}")

    assert own_command() == ("/bin-of-me/uvx", "--from", "toolfold[mcp]", "toolfold")


def test_the_difference_shows_no_secret(tmp_path: Path) -> None:
    machine = furnished(tmp_path)
    config = imported(machine).target

    for client in CLIENTS.values():
        shown = plan_install(machine, client, config, only=True).difference()
        assert "toolfold" in shown
        for secret in (GITHUB, "sk-live-abcdef", "plain-word-key", "mFk29sLq81Zx0PwT73Bd"):
            assert secret not in shown


# ---- editing

keys = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8)
values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
entry = st.fixed_dictionaries({"command": st.text(max_size=8), "args": st.lists(keys, max_size=3)})


@given(
    before=st.dictionaries(keys, values, max_size=4),
    servers=st.dictionaries(keys, entry, max_size=3),
    name=keys,
    new=entry,
    indent=st.sampled_from([None, 2, 4, "\t"]),
    ends=st.sampled_from(["\n", "\r\n"]),
)
def test_any_json_file_takes_an_entry_and_gives_it_back(
    before: dict[str, Any],
    servers: dict[str, Any],
    name: str,
    new: dict[str, Any],
    indent: Any,
    ends: str,
) -> None:
    whole = {**before, "mcpServers": servers}
    text = json.dumps(whole, indent=indent, ensure_ascii=False).replace("\n", ends)

    after = add(text, "json", ("mcpServers",), {name: new}, Path("f"))

    assert json.loads(after) == {**whole, "mcpServers": {**servers, name: new}}
    if name not in servers:
        assert remove(after, "json", ("mcpServers",), [name], Path("f")) == text


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "",
        "// only a comment\n",
        '{"a": 1,}',
        '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
        '{\n  "mcpServers": {"a": {}, /* b */ "b": {}}\n}\n',
        '{\n  "mcpServers": {\n    "a": {} // last\n    // end\n  },\n}\n',
        '{"mcpServers": null}',
    ],
)
def test_comments_and_commas_stay(text: str) -> None:
    after = add(text, "json", ("mcpServers",), {"toolfold": {"command": "x"}}, Path("f"))

    assert parsed(after, CLIENTS["cursor"])["mcpServers"]["toolfold"] == {"command": "x"}
    for comment in re.findall(r"//.*|/\*.*?\*/", text):
        assert comment in after


@pytest.mark.parametrize(
    ("form", "container", "text"),
    [
        ("yaml", ("extensions",), "extensions: {a: {cmd: x}}\n"),
        ("yaml", ("extensions",), "{extensions: {}}\n"),
        ("toml", ("mcp_servers",), "mcp_servers = { a = { command = 'x' } }\n"),
    ],
)
def test_what_cannot_be_changed_without_risk_is_not_changed(
    form: Any, container: tuple[str, ...], text: str
) -> None:
    with pytest.raises(EditError) as caught:
        add(text, form, container, {"toolfold": {"command": "x"}}, Path("f"))

    assert caught.value.message == "`f` is written in a way that cannot be changed without risk"


# ---- the commands


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = machine_at(tmp_path)
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "APPDATA",
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
        "COPILOT_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("TOOLFOLD_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.chdir(machine.project)
    return Machine.this()


def ran(command: Any, *arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(command, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_import_shows_what_there_is_and_what_became_of_it(at_home: Machine) -> None:
    put(user_path(CLIENTS["claude-desktop"], at_home), CLAUDE_DESKTOP)
    put(user_path(CLIENTS["cursor"], at_home), CURSOR)
    where = f"~/{user_config().relative_to(at_home.home).as_posix()}"
    desktop = f"~/{user_path(CLIENTS['claude-desktop'], at_home).relative_to(at_home.home)}"

    assert ran(import_.command) == (
        0,
        f"Claude Desktop  {desktop}\n"
        "  github  new, 1 secret stays there\n"
        "  files  new\n"
        "Cursor  ~/.cursor/mcp.json\n"
        "  github  known\n"
        "  files  new as files-cursor\n"
        "  web  new, 1 secret stays there\n",
        f"wrote 4 servers to {where}\nnext: toolfold search 'what you want to do'\n",
    )
    assert stat.S_IMODE(user_config().stat().st_mode) == 0o600


def test_import_writes_nothing_where_it_is_not_to(at_home: Machine) -> None:
    put(user_path(CLIENTS["junie"], at_home), JUNIE)

    code, listed, _ = ran(import_.command, "--list", "--json")
    _, shown, _ = ran(import_.command, "--dry-run")

    assert code == 0
    assert json.loads(listed) == {
        "file": str(user_config()),
        "written": False,
        "backup": None,
        "found": [
            {
                "client": "junie",
                "path": str(at_home.home / ".junie/mcp/mcp.json"),
                "scope": "user",
                "problem": None,
                "servers": [{"name": "j", "as": "j", "new": True, "secrets": 0}],
            }
        ],
        "variables": [],
        "elsewhere": 0,
    }
    assert yaml.safe_load(shown) == {"mcpServers": {"j": {"command": "j"}}}
    assert not user_config().exists()


def test_import_says_where_nothing_is_found(at_home: Machine) -> None:
    code, out, err = ran(import_.command)

    assert (code, out) == (0, "")
    assert err.startswith("no MCP servers were found\n")


def test_install_says_what_it_did_and_what_comes_next(at_home: Machine) -> None:
    put(user_path(CLIENTS["cursor"], at_home), CURSOR)
    ran(import_.command)

    assert ran(install.command, "cursor") == (
        0,
        "",
        "wrote ~/.cursor/mcp.json\n"
        "what was there is in ~/.cursor/mcp.json.before-toolfold\n"
        "Cursor still starts github, files, web by itself; --only takes them out\n"
        "next: look under Settings, MCP, and switch the entry off and on if it is not there\n",
    )
    assert ran(install.command, "cursor") == (0, "", "toolfold is already in ~/.cursor/mcp.json\n")
    _, listed, _ = ran(install.command, "--list")
    assert re.search(r"^cursor +installed, 3 servers of its own  ~/.cursor/mcp.json$", listed, re.M)
    assert re.search(r"^codex +not found  ~/.codex/config.toml$", listed, re.M)
    assert ran(install.command, "cursor", "--undo")[2].startswith("wrote ~/.cursor/mcp.json\n")
    assert (at_home.home / ".cursor/mcp.json").read_text("utf-8") == CURSOR


def test_a_second_undo_says_that_there_is_nothing_and_what_there_is(at_home: Machine) -> None:
    put(user_path(CLIENTS["cursor"], at_home), CURSOR)
    ran(import_.command)
    ran(install.command, "cursor", "--name", "mine")

    assert ran(install.command, "cursor", "--undo") == (
        0,
        "",
        "toolfold is not in ~/.cursor/mcp.json\n"
        "`mine` there starts toolfold: --name mine takes it out\n",
    )
    ran(install.command, "cursor", "--undo", "--name", "mine")
    assert ran(install.command, "cursor", "--undo")[2] == "toolfold is not in ~/.cursor/mcp.json\n"


def test_install_without_what_serving_needs_touches_no_file(
    at_home: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = user_path(CLIENTS["cursor"], at_home)
    put(path, CURSOR)
    ran(import_.command)
    ran(install.command, "cursor")
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    monkeypatch.setitem(sys.modules, "mcp", None)

    for flags in ([], ["--only"], ["--dry-run"]):
        with pytest.raises(MissingExtraError, match=r"`toolfold serve`.* needs the `mcp` extra"):
            ran(install.command, "cursor", *flags)

    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before
    assert ran(install.command, "cursor", "--undo")[0] == 0
    assert path.read_text("utf-8") == CURSOR


def test_install_prints_what_would_change(at_home: Machine) -> None:
    put(user_path(CLIENTS["junie"], at_home), JUNIE)
    ran(import_.command)

    _, out, err = ran(install.command, "codex", "--dry-run")

    config = user_config()
    path = at_home.home / ".codex/config.toml"
    assert out == (
        f"--- {path}\n+++ {path}\n@@ -0,0 +1,5 @@\n"
        "+[mcp_servers.toolfold]\n"
        f'+command = "{own_command()[0]}"\n'
        f'+args = ["serve", "--config", "{config}", "--wait", "15"]\n'
        "+required = true\n"
        "+startup_timeout_sec = 60\n"
    )
    assert err == "would write ~/.codex/config.toml\n"
    assert not path.exists()


def test_install_prints_the_entry_where_the_file_cannot_be_changed(at_home: Machine) -> None:
    put(user_path(CLIENTS["junie"], at_home), JUNIE)
    ran(import_.command)
    path = put(user_path(CLIENTS["goose"], at_home), "extensions: {a: {cmd: x}}\n")

    result = CliRunner().invoke(install.command, ["goose"])

    assert isinstance(result.exception, ConfigError)
    assert result.exception.message == (
        f"`{path}` is written in a way that cannot be changed without risk"
    )
    assert yaml.safe_load(result.stdout)["extensions"]["toolfold"]["cmd"] == own_command()[0]
    assert path.read_text("utf-8") == "extensions: {a: {cmd: x}}\n"


def test_install_wants_a_configuration_first(at_home: Machine) -> None:
    with pytest.raises(ConfigError) as caught:
        ran(install.command, "cursor")

    assert caught.value.message == "there is no configuration to serve"
    assert caught.value.hint == (
        "run `toolfold import` to find yours, or give --config FILE with `mcpServers`"
    )
    put(at_home.project / ".mcp.json", PROJECT_MCP)
    with pytest.raises(ConfigError) as caught:
        ran(call.command, "x")
    assert caught.value.hint == (
        "give `--config .mcp.json` for the servers of this folder, or run `toolfold import`"
    )


# ---- live servers

SERVER = """\
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "greet", "description": "Greet a person by name.",
                  "inputSchema": {"type": "object", "properties": {
                      "name": {"type": "string"}, "times": {"type": "integer"}},
                      "required": ["name"]}}]}
    elif method == "tools/call":
        text = "hello " + json.dumps(message["params"]["arguments"], sort_keys=True)
        result = {"content": [{"type": "text", "text": text}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"],
              "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture
def live(at_home: Machine) -> Path:
    server = put(at_home.project / "server.py", SERVER)
    servers = {
        "a": {"command": sys.executable, "args": [str(server)]},
        "b": {"command": sys.executable, "args": [str(server)], "deny": ["gr*"]},
        "dead": {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]},
        "unset": {"command": "x", "env": {"K": "${NOT_SET_AT_ALL}"}},
    }
    return put(at_home.project / "servers.json", json.dumps({"mcpServers": servers}))


def test_live_servers_are_listed_and_the_failed_ones_named(live: Path) -> None:
    pytest.importorskip("mcp")

    code, out, err = ran(list_command.command, "--config", str(live))

    assert code == 0
    assert out == "a (1)\n  a__greet  Greet a person by name.\n1 tool, about 53 tokens\n"
    assert sorted(re.sub(r"failed: .*", "failed", line) for line in err.splitlines()) == [
        "warning: server 'dead' failed",
        "warning: server 'unset' failed",
    ]
    assert "`NOT_SET_AT_ALL`, which is not set" in err


def test_a_live_tool_is_called_and_its_arguments_are_checked(live: Path) -> None:
    pytest.importorskip("mcp")

    def called(*arguments: str) -> tuple[int, str, str]:
        return ran(call.command, "a__greet", "--config", str(live), *arguments)

    assert called("--arg", "name=Ann", "--arg", "times=2") == (
        0,
        'hello {"name": "Ann", "times": 2}\n',
        "",
    )
    whole = json.loads(called("--json-args", '{"name": "Bo"}', "--json")[1])
    assert whole["content"] == [{"type": "text", "text": 'hello {"name": "Bo"}'}]
    audit = load_gateway(live, strict=False).serve.audit_file
    assert audit is not None
    assert len(audit.read_text("utf-8").splitlines()) == 2
    with pytest.raises(ToolfoldError) as caught:
        called()
    assert caught.value.message == "a__greet was not called: missing argument 'name'"
    assert caught.value.hint == "a__greet(name: string, times?: integer)"


def test_a_tool_outside_the_scope_cannot_be_called(live: Path) -> None:
    pytest.importorskip("mcp")

    for name, scope in (("a__greet", ("--deny", "@a")), ("b__greet", ())):
        with pytest.raises(ToolfoldError, match=f"no tool named '{name}'"):
            ran(call.command, name, "--arg", "name=x", "--config", str(live), *scope)


def test_every_place_of_a_client_is_looked_at(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)

    for client in CLIENTS.values():
        places = locations(client, machine)
        assert places[0].scope == "user"
        assert all(place.path.is_absolute() for place in places)
