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


@pytest.mark.parametrize("verb", ["push", "diff"])
def test_the_demos_tools_are_never_written_into_what_others_share(verb: str) -> None:
    ran = run("catalog", verb, "--store", "host=/nowhere")

    first = ran.stderr.splitlines()[0]
    assert (ran.exit_code, first) == (2, "error: there is no configuration that names servers")
    assert "give --catalog FILE, or run `toolfold import`" in ran.stderr


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


def test_a_program_that_is_not_there_is_said_before_anything_is_started() -> None:
    ran = run("run", "--", "no-such-program-here")

    assert (ran.exit_code, ran.stdout, ran.stderr) == (
        127,
        "",
        "error: there is no program `no-such-program-here`\n\nhint: install it, or give its path\n",
    )


def test_nobody_is_asked_whether_to_forget_nothing() -> None:
    ran = run("memory", "clear", "--file", "none.sqlite")

    assert (ran.exit_code, ran.stdout) == (0, "forgot 0 records\n")


def test_a_list_of_no_servers_says_so_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path.cwd()))
    monkeypatch.setenv("USERPROFILE", str(Path.cwd()))

    for command in (["import", "--list"], ["import"]):
        ran = run(*command)
        assert ran.exit_code == 0
        assert ran.stderr.startswith("no MCP servers were found\nwrite them under `mcpServers` in ")


def test_a_client_with_one_server_is_told_of_it_and_after_undoing_nothing_comes_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(Path.cwd()))
    monkeypatch.setenv("USERPROFILE", str(Path.cwd()))
    Path(".cursor").mkdir()
    servers = json.dumps({"mcpServers": {"files": {"command": "files"}}})
    Path(".cursor/mcp.json").write_text(servers, "utf-8")
    Path("c.yaml").write_text(servers, "utf-8")

    done = run("install", "cursor", "--config", "c.yaml")
    undone = run("install", "cursor", "--undo", "--config", "c.yaml")

    assert "Cursor still starts files by itself; --only takes it out\n" in done.stderr
    assert "next: " in done.stderr and "next: " not in undone.stderr


def test_what_is_found_well_needs_no_words() -> None:
    tool = {"name": "send_mail", "description": "Send a mail to somebody, with a subject."}
    Path("tools.json").write_text(json.dumps([tool]), "utf-8")

    ran = run("enrich", "--model", "any", "--catalog", "tools.json", "--hard-to-find")

    assert ran.stdout.splitlines()[-1] == "nothing to ask: no tool without words is hard to find"


def test_trust_says_where_what_waits_is_seen(tmp_path: Path) -> None:
    state = ("--state-dir", str(tmp_path))

    unknown = run("trust", "show", "github__create_issue", *state)
    nothing = run("trust", "approve", "--all", "--yes", *state)

    hint = "\n\nhint: see those that {} with `toolfold trust`\n"
    assert unknown.stderr == f"error: no tool named 'github__create_issue'{hint.format('wait')}"
    assert nothing.stderr == f"error: no tool waits{hint.format('do')}"


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
