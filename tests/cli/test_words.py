"""What the command line says where something is missing or fails: true, and a next step."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anthropic
import click
import openai
import pytest
from click.testing import CliRunner

from support.model_server import Fails, ModelServer, Says
from toolfold.cli import main

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"(?:--model|llm -m|OpenAIChat\(|Anthropic\()[ \"]+((?:gpt|claude|o\d)-[\w.-]+)")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TOOLFOLD_CONFIG", raising=False)


def run(*arguments: str, stdin: str | None = None) -> Any:
    return CliRunner().invoke(main, list(arguments), input=stdin)


COMMANDS = (["serve"], ["call", "x"], ["install", "cursor"], ["list"], ["check"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_configuration_without_servers_is_called_that(command: list[str]) -> None:
    Path("c.yaml").write_text("serve: {audit: off}\n", "utf-8")

    ran = run(*command, "--config", "c.yaml")

    first = ran.stderr.splitlines()[0]
    assert (ran.exit_code, first) == (
        2,
        "error: `c.yaml` names no servers, no functions and no APIs",
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_configuration_whose_servers_are_disabled_is_called_that(command: list[str]) -> None:
    servers = {"a": {"command": "a", "disabled": True}}
    Path("c.yaml").write_text(json.dumps({"mcpServers": servers}), "utf-8")

    ran = run(*command, "--config", "c.yaml")

    first = ran.stderr.splitlines()[0]
    assert (ran.exit_code, first) == (2, "error: every server of `c.yaml` is disabled")


def test_no_configuration_at_all_is_called_that() -> None:
    for command in (["serve"], ["call", "x"]):
        ran = run(*command)
        first = ran.stderr.splitlines()[0]
        assert (ran.exit_code, first) == (2, "error: there is no configuration that names servers")


def test_a_name_in_capitals_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def blank(*_: Any, **__: Any) -> None:
        raise click.UsageError("QUERY is blank.")

    monkeypatch.setattr("toolfold.cli.list.command.callback", blank)

    assert run("list").stderr.splitlines()[0] == "error: QUERY is blank"
    assert run("search", " ").stderr.splitlines()[0] == "error: the query is blank"
    assert run("search").stderr.splitlines()[0] == "error: missing argument 'QUERY'"


def test_a_chat_that_failed_ends_with_an_error_where_nobody_sees_it() -> None:
    with ModelServer(Says("Hello."), Fails(400), Says("Again.")) as server:
        where = ("--model", "any", "--base-url", server.openai)
        failed = run("chat", *where, stdin="One.\nTwo.\nThree.\n")
        well = run("chat", *where, stdin="/quit\n")

    assert "Again." in failed.stdout  # it goes on all the same
    assert (failed.exit_code, well.exit_code) == (1, 0)


def test_no_hint_names_what_only_a_program_can_give() -> None:
    with ModelServer(Fails(401)) as server:
        where = ("--model", "any", "--once", "Hello.", "--base-url")
        refused = run("chat", *where, server.openai)
    login = run("chat", *where, "http://me:pw@127.0.0.1:9/v1")

    assert "hint: set OPENAI_API_KEY, or give another key" in refused.stderr
    assert "hint: leave them out of it, and give a key instead" in login.stderr
    assert "api_key" not in refused.stderr + login.stderr


def test_no_example_names_a_model_that_its_maker_calls_deprecated_or_does_not_know() -> None:
    anthropics = Path(anthropic.__file__).parent
    openais = (Path(openai.__file__).parent / "types/shared/chat_model.py").read_text("utf-8")
    known, _, deprecated = openais.partition('"""Deprecated values:')
    params = (anthropics / "types/model_param.py").read_text("utf-8")
    messages = (anthropics / "resources/messages/messages.py").read_text("utf-8")
    old = messages.partition("DEPRECATED_MODELS")[2].partition("}")[0]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]

    named = {name for page in pages for name in NAMED.findall(page.read_text("utf-8"))}

    assert named
    for name in named:
        assert f'"{name}"' in known + params, name
        assert f'"{name}"' not in deprecated + old, name
