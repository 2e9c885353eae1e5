"""`--profile`: what a command shows, makes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolfold.cli.main import main
from toolfold.config.gateway_config import load_gateway
from toolfold.serve.principals import TokenTable
from toolfold.serve.token_store import with_kept_tokens

MODULE = '''
from toolfold.runtime import Registry

registry = Registry()


@registry.tool(read_only=True)
def look(x: str) -> str:
    """Look at something."""
    return x


@registry.tool
def wipe(x: str) -> str:
    """Destroy something."""
    return x
'''


@pytest.fixture
def config(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(MODULE, "utf-8")
    path = tmp_path / "toolfold.json"
    whole = {
        "functions": {"one": "./one.py", "two": "./two.py"},
        "mcpServers": {"far": {"command": "true"}},
        "serve": {"state_dir": str(tmp_path / "state"), "audit": "off"},
        "profiles": {
            "reads": {"servers": ["one"], "read_only": True},
            "far-away": {"servers": ["far"]},
        },
        "tools": {"tool_search": {"cache_dir": "off"}},
    }
    path.write_text(json.dumps(whole), "utf-8")
    return path


def run(config: Path, *words: str) -> Any:
    return CliRunner().invoke(main, [*words, "--config", str(config)])


def test_a_list_and_a_call_keep_to_the_profile(config: Path) -> None:
    listed = run(config, "list", "--profile", "reads", "--json")
    assert [tool["name"] for tool in json.loads(listed.stdout)["tools"]] == ["one__look"]

    called = run(config, "call", "one__look", "--profile", "reads", "--arg", "x=a")
    assert called.stdout.strip() == "a"
    hidden = run(config, "call", "one__wipe", "--profile", "reads", "--arg", "x=a")
    assert hidden.exit_code != 0
    assert "no tool named 'one__wipe'" in hidden.stderr


@pytest.mark.parametrize("command", ["list", "fold", "check", "search x", "describe one__look"])
def test_a_profile_that_is_not_there_is_named_with_the_nearest(config: Path, command: str) -> None:
    done = run(config, *command.split(), "--profile", "read")

    assert done.exit_code == 2
    assert "there is no profile 'read'" in done.stderr
    assert "`reads`" in done.stderr


def test_a_profile_needs_a_configuration(config: Path) -> None:
    done = CliRunner().invoke(main, ["list", "--catalog", "x.json", "--profile", "reads"])

    assert done.exit_code == 2
    assert "--config FILE" in done.stderr


def test_over_http_a_profile_is_a_path_and_no_flag(config: Path) -> None:
    done = run(config, "serve", "--http", "127.0.0.1:0", "--profile", "reads")

    assert done.exit_code == 2
    assert "/mcp/reads" in done.stderr


def test_a_token_can_be_made_for_a_profile_alone(config: Path) -> None:
    assert run(config, "tokens", "create", "t", "--profile", "never").exit_code == 2
    made = run(config, "tokens", "create", "t", "--profile", "reads")
    table = TokenTable.of(with_kept_tokens(load_gateway(config)).serve)

    found = table.admit(made.stdout.strip())
    assert found is not None
    assert found.profiles == {"reads"}
    assert not found.watches
    assert "under reads alone" in run(config, "tokens", "list").stdout
    # Who does not know of profiles would let it in everywhere.
    kept = json.loads((config.parent / "state" / "tokens.json").read_text("utf-8"))
    assert kept["version"] == 2


def test_a_server_that_a_profile_names_is_not_taken_out(config: Path) -> None:
    before = config.read_text("utf-8")
    done = run(config, "servers", "remove", "far")

    assert done.exit_code == 2
    assert "`profiles.far-away.servers`" in done.stderr
    assert config.read_text("utf-8") == before
