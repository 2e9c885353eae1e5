"""`toolfold chat --config`: servers and functions of a configuration beside other tools."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner

from support.chatting import Ran, prepare, timeless
from support.gateways import ODD
from support.model_server import ModelServer, Says
from toolfold.cli import main
from toolfold.runtime import Call

ECHO = {"command": sys.executable, "args": [ODD, "stdio"], "env": {"WHO": "one:"}}
DEAD = {"command": sys.executable, "args": [ODD, "stdio", "die"]}
NOTES = '''
written = []


def add(text: str) -> str:
    """Write a note."""
    written.append(text)
    return f"note {len(written)}"
'''


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("TOOLFOLD_CONFIG", raising=False)
    Path("notes.py").write_text(NOTES, encoding="utf-8")


def configure(servers: dict[str, Any], *, functions: bool = True, **tool_search: Any) -> None:
    named = {"functions": {"notes": "./notes.py"}} if functions else {}
    tools = {"tools": {"tool_search": {"cache_dir": "off", **tool_search}}}
    Path("f.json").write_text(json.dumps({"mcpServers": servers, **named, **tools}), "utf-8")


def run(*arguments: str, stdin: str | None = None) -> Ran:
    result = CliRunner().invoke(main, ["chat", *arguments], input=stdin)
    return Ran(result.exit_code, timeless(result.stdout), timeless(result.stderr))


def play(script: str, *arguments: str) -> Ran:
    Path("script.yaml").write_text(dedent(script), encoding="utf-8")
    return run("--script", "script.yaml", *arguments)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


MIX = """
    turns:
      - user: Use all of it.
        replies:
          - calls: [{tool_search: {query: say a text back | write a note | look at something}}]
          - calls: [{tool_call: {name: one__echo, arguments: {x: hi}}}]
          - calls: [{tool_call: {name: notes__add, arguments: {text: hi}}}]
          - calls: [{tool_call: {name: look, arguments: {at: wall}}}]
          - calls: [{tool_call: {name: tea, arguments: {}}}]
          - Done.
        approve: [yes]
      - user: And the server again.
        replies:
          - calls: [{tool_call: {name: one__wipe, arguments: {x: all}}}]
          - calls: [{tool_call: {name: one__progress, arguments: {x: p}}}]
          - Done.
        approve: [no, yes]
    """


def test_a_script_is_played_over_a_server_functions_a_file_and_a_catalog() -> None:
    configure({"one": ECHO}, enabled="on")
    Path("more.json").write_text('[{"name": "tea", "description": "Make tea."}]', "utf-8")

    ran = play(
        MIX, "--config", "f.json", "--tools", "tools.py", "--catalog", "more.json",
        "--transcript", "t.jsonl",
    )  # fmt: skip

    assert (ran.code, ran.err) == (0, "")
    greeting, *lines = ran.out.splitlines()
    assert greeting.startswith("the script script.yaml · 0 tools kept, 25 deferred · ")
    assert [line for line in lines if not line.startswith(("  ⌕", "  ⋯", ">"))] == [
        '  ▶ one__echo {"x": "hi"}',
        "  ✓ one__echo 0 ms, 6 chars",
        'Run notes__add {"text": "hi"}? [y]es / [a]lways / [N]o y',
        '  ▶ notes__add {"text": "hi"}',
        "  ✓ notes__add 0 ms, 6 chars",
        '  ▶ look {"at": "wall"}',
        "  ✓ look 0 ms, 9 chars",
        "  ▶ tea {}",
        "  ✗ tea 0 ms: tea is not connected here: only its definition is known. Say so.",
        "Done.",
        lines[lines.index("Done.") + 1],
        "",
        'Run one__wipe {"x": "all"}? [y]es / [a]lways / [N]o n',
        "  ⊘ one__wipe refused: The user said no. Do not try it again; ask the user, or go on "
        "without it.",
        'Run one__progress {"x": "p"}? [y]es / [a]lways / [N]o y',
        '  ▶ one__progress {"x": "p"}',
        "  ✓ one__progress 0 ms, 1 chars",
        "Done.",
        lines[-1],
    ]
    assert "  ⋯ one__progress 80% p4" in lines
    written = [json.loads(line) for line in Path("t.jsonl").read_text("utf-8").splitlines()]
    assert [m["text"] for m in written if m["role"] == "result"][1:4] == [
        "one:hi", "note 1", "seen wall",
    ]  # fmt: skip


PID = """
    turns:
      - {user: a, replies: [{calls: [{one__pid: {}}]}, {text: b}], approve: [yes]}
      - {user: c, replies: [{calls: [{one__pid: {}}]}, {text: d}], approve: [yes]}
    """


def test_a_server_lives_as_long_as_the_chat_and_no_longer() -> None:
    configure({"one": ECHO})

    ran = play(PID, "--config", "f.json", "--transcript", "t.jsonl")

    assert (ran.code, ran.err) == (0, "")
    written = [json.loads(line) for line in Path("t.jsonl").read_text("utf-8").splitlines()]
    [first, second] = [int(m["text"]) for m in written if m["role"] == "result"]
    assert first == second
    assert not is_running(first)


def test_a_server_that_cannot_be_reached_is_said_and_the_rest_goes_on() -> None:
    configure({"dead": DEAD, "one": ECHO, "bad": {"command": "x", "env": {"A": "${NOT_SET}"}}})
    script = "turns: [{user: a, replies: [{calls: [{one__echo: {x: b}}]}, {text: c}]}]"

    ran = play(script, "--config", "f.json")

    assert ran.code == 0
    assert "  ✓ one__echo 0 ms, 5 chars\n" in ran.out
    dead, bad = sorted(ran.err.splitlines(), reverse=True)
    assert dead == "warning: server 'dead' failed: ended with 3 before it was ready: I cannot go on"
    assert bad.startswith("warning: server 'bad' failed: ")
    assert "NOT_SET" in bad


def test_one_message_is_answered_and_each_turn_is_a_json_object() -> None:
    configure({"one": ECHO}, functions=False)
    answers = (Says(calls=(Call("one__echo", '{"x": "hi"}', "a"),)), Says("It says hi."))
    with ModelServer(*answers) as server:
        ran = run(
            "--model", "any", "--base-url", server.openai, "--config", "f.json", "--json",
            "--once", "Say hi.",
        )  # fmt: skip

    turn = json.loads(ran.out)
    assert (ran.code, turn["text"], turn["stop"]) == (0, "It says hi.", "end")
    assert [(a["kind"], a["tool"]) for a in turn["activities"]] == [
        ("started", "one__echo"),
        ("finished", "one__echo"),
    ]
    assert server.requests[1].body["messages"][-1]["content"] == "one:hi"


def test_the_scope_of_the_command_line_and_the_servers_own_lists_hold() -> None:
    configure({"one": {**ECHO, "allow": ["echo", "pid"]}})
    script = """
        turns:
          - user: a
            replies:
              - calls: [{one__pid: {}}, {one__wipe: {}}, {notes__add: {text: x}}]
              - b
        """

    ran = play(script, "--config", "f.json", "--deny", "*pid", "--deny", "@notes")

    assert ran.out.startswith("the script script.yaml · 1 tool, none folded")
    assert ran.out.count("is not available in this session") == 3


def test_a_configuration_without_tools_has_settings_for_tools_of_another_file() -> None:
    Path("f.yaml").write_text("tools: {tool_search: {enabled: off}}", "utf-8")
    Path("tools.json").write_text('[{"name": "a"}, {"name": "b"}]', "utf-8")
    script = "turns: [{user: a, replies: [b]}]"

    alone = play(script, "--config", "f.yaml")
    beside = play(script, "--config", "f.yaml", "--catalog", "tools.json")

    assert (alone.code, alone.out) == (2, "")
    assert (beside.code, beside.err) == (0, "")
    assert beside.out.startswith("the script script.yaml · 2 tools, none folded")


def test_without_config_no_server_is_started_whatever_the_users_own_file_names() -> None:
    own = Path("config/toolfold/toolfold.yaml")
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({"mcpServers": {"dead": DEAD}}), "utf-8")

    ran = play("turns: [{user: a, replies: [b]}]")

    assert (ran.code, ran.err) == (0, "")
    assert "205 deferred" in ran.out


def test_functions_that_cannot_be_loaded_are_named_before_anything_starts() -> None:
    configure({"one": ECHO})
    Path("notes.py").write_text("1 / 0\n", encoding="utf-8")

    ran = play("turns: [{user: a, replies: [b]}]", "--config", "f.json")

    assert (ran.code, ran.out) == (2, "")
    assert "notes.py`, line 1: ZeroDivisionError: division by zero" in ran.err


def test_a_servers_tool_is_asked_about_though_a_catalog_defines_one_of_that_name() -> None:
    configure({"one": ECHO}, functions=False)
    catalog = [{"name": "one__wipe", "description": "Nothing runs this."}, {"name": "other"}]
    Path("more.json").write_text(json.dumps(catalog), "utf-8")
    script = "turns: [{user: a, replies: [{calls: [{one__wipe: {}}]}, {text: b}]}]"

    ran = play(script, "--config", "f.json", "--catalog", "more.json")

    # What the command line names comes first: the server's is never reached unasked.
    assert "one__wipe is not connected here" in ran.out
    assert "▶ one__wipe {}\n  ✗" in ran.out


def test_a_tool_that_changed_waits_for_a_person_in_a_chat_too() -> None:
    ask = "turns: [{user: a, replies: [{calls: [{one__echo: {x: b}}]}, {text: c}]}]"
    serve = {"serve": {"trust": "changes", "state_dir": "state"}}

    def chat(about: str) -> Ran:
        server = {**ECHO, "allow": ["echo"], "env": {"ABOUT": about}}
        Path("f.json").write_text(json.dumps({"mcpServers": {"one": server}, **serve}), "utf-8")
        return play(ask, "--config", "f.json")

    first, changed = chat("Say a text back."), chat("Say a text back, and mail it to me.")

    assert "✓ one__echo" in first.out
    assert changed.err == "1 tool waits for approval: see `toolfold trust`\n"
    assert '"one__echo" is not available in this session' in changed.out


def test_secrets_of_servers_are_in_no_transcript() -> None:
    secret = "correct-horse-battery"
    configure({"one": {**ECHO, "env": {"SOME_TOKEN": secret}}}, functions=False)
    script = """
        turns:
          - {user: a, replies: [{calls: [{one__env: {x: SOME_TOKEN}}]}, {text: b}], approve: [yes]}
        """

    ran = play(script, "--config", "f.json", "--transcript", "t.jsonl")

    assert (ran.code, ran.err) == (0, "")
    assert f"✓ one__env 0 ms, {len(secret)} chars" in ran.out
    assert secret not in Path("t.jsonl").read_text("utf-8")


def test_the_commands_at_the_prompt_know_the_servers_tools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure({"one": {**ECHO, "allow": ["echo", "pid"]}})
    with ModelServer() as server:
        ran = run(
            "--model", "any", "--base-url", server.openai, "--config", "f.json",
            stdin="/tools\n/tools say a text back\n/quit\n",
        )  # fmt: skip

    assert (ran.code, ran.err) == (0, "")
    assert "  one  2 tools\n  notes  1 tool\n" in ran.out
    assert "  one__echo  Say a text back.\n" in ran.out


def test_the_model_and_the_person_are_told_of_a_dead_server() -> None:
    configure({"jira": DEAD}, enabled="on")

    played = play(
        """
        turns:
          - user: File it.
            replies:
              - calls:
                  - tool_search: {query: a jira ticket}
              - text: I cannot.
        """,
        "--config",
        "f.json",
        "--transcript",
        "t.jsonl",
    )

    assert played.code == 0, played.err
    assert "jira is not running: ended" in Path("t.jsonl").read_text("utf-8")
    assert "server 'jira' failed" in played.err
    with ModelServer() as server:
        typed = run(
            "--model", "m", "--base-url", server.url, "--config", "f.json", stdin="/tools\n/quit\n"
        )
    assert "jira is not running: ended" in typed.out
