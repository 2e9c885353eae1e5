"""Commands that take a configuration: its servers' tools, its settings, read once."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from support.gateways import ODD
from toolfold.cli import main

LIVE = (["list"], ["fold", "--enabled", "on"], ["search", "say a text back"], ["check"])


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TOOLFOLD_CONFIG", raising=False)


def run(*arguments: str) -> Ran:
    result = CliRunner().invoke(main, list(arguments))
    return Ran(result.exit_code, result.stdout, result.stderr)


def configuration(**tool_search: Any) -> str:
    server = {"command": sys.executable, "args": [ODD, "stdio"], "allow": ["echo", "pid"]}
    whole = {
        "mcpServers": {"one": server},
        "serve": {"audit": "off"},
        "tools": {"tool_search": {"cache_dir": "off", **tool_search}},
    }
    return json.dumps(whole)


def test_fold_prints_the_tools_of_the_configurations_servers_and_never_the_demos() -> None:
    Path("servers.json").write_text(configuration(), "utf-8")

    seen = json.loads(run("fold", "--config", "servers.json", "--diff", "--json").out)
    folded = json.loads(
        run("fold", "--config", "servers.json", "--enabled", "on", "--diff", "--json").out
    )

    assert seen["tools_before"] == folded["tools_before"] == 2
    assert [tool["name"] for tool in seen["tools"]] == ["one__echo", "one__pid"]
    assert folded["left"] == ["one__echo", "one__pid"]


def test_a_scope_and_the_files_settings_hold_for_a_live_fold() -> None:
    Path("servers.json").write_text(configuration(enabled="on", core=["one__pid"]), "utf-8")

    seen = json.loads(run("fold", "--config", "servers.json", "--core", "one__echo", "--json").out)
    narrow = json.loads(run("fold", "--config", "servers.json", "--deny", "*pid", "--json").out)

    assert (seen["active"], seen["kept"]) == (False, 2)
    assert (narrow["active"], narrow["tools_before"]) == (True, 1)


def test_describe_shows_what_the_settings_say_of_a_tool() -> None:
    Path("servers.json").write_text(
        configuration(annotations={"*__pid": {"readOnlyHint": True}}), "utf-8"
    )

    ran = run("describe", "one__pid", "--config", "servers.json", "--json")

    assert json.loads(ran.out)["tools"][0]["annotations"] == {"readOnlyHint": True}


@pytest.mark.parametrize("arguments", [*LIVE, ["describe", "x"]], ids=lambda given: given[0])
def test_a_named_configuration_without_tools_is_an_error_and_not_the_demo(
    arguments: list[str],
) -> None:
    Path("settings.yaml").write_text("tools: {tool_search: {enabled: on}}", "utf-8")

    assert run(*arguments, "--config", "settings.yaml") == Ran(
        2,
        "",
        "error: `settings.yaml` names no servers, no functions and no APIs\n\n"
        "hint: write `mcpServers`, `functions` or `openapi` into it, or give --catalog FILE\n",
    )


CHAT = ["chat", "--script", "demo"]


@pytest.mark.parametrize("arguments", [*LIVE, CHAT], ids=lambda given: given[0])
@pytest.mark.parametrize("text", ["", "{}", "mcpServers: {}", "tools: {tool_search: true}"])
def test_the_demo_stands_in_for_no_file_that_was_named(
    arguments: list[str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("named.yaml").write_text(text, "utf-8")
    said = "error: `named.yaml` names no servers, no functions and no APIs\n"

    by_flag = run(*arguments, "--config", "named.yaml")
    monkeypatch.setenv("TOOLFOLD_CONFIG", "named.yaml")
    by_variable = run(*arguments)

    assert (by_flag.code, by_flag.out) == (by_variable.code, by_variable.out) == (2, "")
    assert by_flag.err.startswith(said)
    assert by_variable.err.startswith(said)


@pytest.mark.parametrize("arguments", [*LIVE, CHAT], ids=lambda given: given[0])
def test_a_configuration_that_is_not_there_or_no_name_at_all_is_an_error(
    arguments: list[str],
) -> None:
    Path("tools.json").write_text('[{"name": "a"}]', "utf-8")

    missing = run(*arguments, "--config", "nowhere.yaml")
    blank = run(*arguments, "--config", "")
    no_configuration = run(*arguments, "--config", "tools.json")

    assert (missing.code, missing.out) == (2, "")
    assert missing.err.startswith("error: cannot read `nowhere.yaml`: ")
    assert (blank.code, blank.out) == (2, "")
    assert blank.err.startswith("error: --config is blank: name a file, or leave it out\n")
    assert (no_configuration.code, no_configuration.out) == (2, "")
    assert no_configuration.err.startswith("error: the file is no mapping in `tools.json`")


def test_a_configuration_beside_a_catalog_must_be_there_too() -> None:
    Path("tools.json").write_text('[{"name": "a"}]', "utf-8")

    ran = run("list", "--catalog", "tools.json", "--config", "nowhere.yaml")

    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize("arguments", [*LIVE, CHAT], ids=lambda given: given[0])
def test_the_demo_stands_in_for_no_file_that_names_servers(
    arguments: list[str], tmp_path: Path
) -> None:
    own = tmp_path / "config" / "toolfold" / "toolfold.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("mcpServers: {a: {command: x, disabled: true}}", "utf-8")

    ran = run(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: every server of `{own}` is disabled\n")


@pytest.mark.parametrize("arguments", [*LIVE, CHAT], ids=lambda given: given[0])
def test_beside_a_found_file_of_settings_alone_the_demo_stands_and_the_first_line_says_so(
    arguments: list[str],
) -> None:
    Path("toolfold.yaml").write_text("tools: {tool_search: {enabled: on}}", "utf-8")

    ran = run(*arguments)

    said = "`toolfold.yaml` has settings alone: these are the demo's tools"
    assert ran.code == 0
    assert ran.err.splitlines()[0] == said


@pytest.mark.parametrize("arguments", LIVE, ids=lambda given: given[0])
@pytest.mark.parametrize("block", ["mcpServers: {a: {command: x}}", "functions: {a: ./a.py}"])
def test_a_folders_own_file_with_programs_is_refused_unless_it_is_named(
    arguments: list[str], block: str
) -> None:
    Path("toolfold.yaml").write_text(block, "utf-8")

    ran = run(*arguments)

    assert ran.code == 2
    assert ran.err.startswith("error: this folder's file names ")
    assert ran.err.endswith("hint: give `--config toolfold.yaml` if you trust it\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a file that can be read once")
@pytest.mark.parametrize("arguments", LIVE, ids=lambda given: given[0])
def test_the_configuration_is_read_once(arguments: list[str]) -> None:
    os.mkfifo("servers.json")
    # A second reader would wait for a writer for ever.
    writer = threading.Thread(
        target=Path("servers.json").write_text, args=(configuration(), "utf-8"), daemon=True
    )
    writer.start()

    assert run(*arguments, "--config", "servers.json").code == 0
    writer.join(5)


# ---- functions


OWN = """
print("loaded")

def weigh(parcel: str, grams: int = 0) -> dict:
    "Weigh a parcel."
    print("weighed")
    return {"parcel": parcel, "grams": grams}

def fail() -> None:
    "Fail."
    raise ValueError("it is wet")
"""


def with_functions(*, servers: bool = False, command: str = sys.executable) -> None:
    Path("own_tools.py").write_text(OWN, "utf-8")
    whole = json.loads(configuration())
    whole["functions"] = {"own": "./own_tools.py"}
    whole["mcpServers"]["one"]["command"] = command
    if not servers:
        del whole["mcpServers"]
    Path("own.json").write_text(json.dumps(whole), "utf-8")


@pytest.mark.parametrize("servers", [False, True], ids=["alone", "beside a server"])
def test_functions_are_listed_searched_described_and_folded(servers: bool) -> None:
    with_functions(servers=servers)

    listed = json.loads(run("list", "--config", "own.json", "--json").out)
    found = json.loads(run("search", "weigh a parcel", "--config", "own.json", "--json").out)
    described = json.loads(run("describe", "own__weigh", "--config", "own.json", "--json").out)
    folded = json.loads(run("fold", "--config", "own.json", "--json").out)

    beside = ["one__echo", "one__pid"] if servers else []
    assert [tool["name"] for tool in listed["tools"]] == [*beside, "own__weigh", "own__fail"]
    assert "own__weigh" in json.dumps(found)
    assert described["tools"][0]["name"] == "own__weigh"
    assert folded["tools_before"] == len(beside) + 2


def test_a_function_is_called_and_what_it_prints_is_not_in_the_answer() -> None:
    # No server is started for it: this one could not be.
    with_functions(servers=True, command="no-such-program-at-all")
    call = ("call", "own__weigh", "--arg", "parcel=a", "--arg", "grams=7", "--config", "own.json")

    as_json = run(*call, "--json")
    plain = run(*call)

    assert json.loads(as_json.out)["structuredContent"] == {"parcel": "a", "grams": 7}
    assert as_json.err.split() == ["loaded", "weighed"]
    assert (plain.code, plain.out) == (0, '{"parcel":"a","grams":7}\n')


def test_a_function_that_fails_ends_a_call_with_one_and_wrong_arguments_are_refused() -> None:
    with_functions()

    failed = run("call", "own__fail", "--config", "own.json")
    wrong = run("call", "own__weigh", "--arg", "grams=much", "--config", "own.json")

    assert (failed.code, failed.out) == (1, "")
    assert "it is wet" in failed.err
    assert wrong.code == 1
    assert "error: own__weigh was not called: " in wrong.err
    assert "hint: own__weigh(parcel: string, grams?: integer" in wrong.err


def test_functions_are_listed_though_every_server_failed() -> None:
    with_functions(servers=True, command="no-such-program-at-all")

    ran = run("list", "--config", "own.json", "--json")

    assert [tool["name"] for tool in json.loads(ran.out)["tools"]] == ["own__weigh", "own__fail"]
    assert "warning: server 'one' failed" in ran.err


@pytest.mark.parametrize("arguments", [*LIVE, ["call", "own__x"]], ids=lambda given: given[0])
def test_a_module_that_cannot_be_loaded_is_an_error_with_the_fix(arguments: list[str]) -> None:
    with_functions()
    Path("own_tools.py").write_text("1 / 0", "utf-8")

    ran = run(*arguments, "--config", "own.json")

    assert (ran.code, ran.out) == (2, "")
    assert "own_tools.py`, line 1: ZeroDivisionError: division by zero" in ran.err
    assert ran.err.endswith("hint: mend the file\n")


def test_a_flag_has_the_choices_the_range_and_the_words_of_its_setting() -> None:
    fold_help = " ".join(run("fold", "--help").out.split())
    serve_help = " ".join(run("serve", "--help").out.split())

    assert "--listing [off|sources|names] What the search tool's description lists" in fold_help
    assert "--lazy / --no-lazy Whether a server whose tools are known" in serve_help
    assert run("fold", "--listing", "all").err.startswith(
        "error: invalid value for '--listing': 'all' is not one of 'off', 'sources', 'names'"
    )
    assert run("serve", "--context-length", "0").err.startswith(
        "error: invalid value for '--context-length': 0 is not in the range 1<=x<="
    )


def test_replay_takes_the_tools_of_the_configuration_that_is_named() -> None:
    Path("servers.json").write_text(configuration(core=["one__pid"]), "utf-8")
    Path("own.py").write_text('def brew() -> str:\n    "Brew tea."\n    return "tea"\n', "utf-8")
    need = {"search": "say a text back", "tool": "one__echo", "arguments": {"x": "a"}}
    trace = [
        {"trace": "talk", "catalog": "none.json"},
        {"user": "Say a", "needs": [{**need, "result": "one:a"}], "answer": "a"},
        {"user": "Tea", "needs": [{"search": "brew tea", "tool": "brew"}], "answer": "Tea."},
    ]
    Path("none.json").write_text("[]", "utf-8")
    Path("talk.jsonl").write_text("\n".join(json.dumps(line) for line in trace), "utf-8")

    done = run(
        "replay", "talk.jsonl", "-c", "servers.json", "--tools", "own.py", "--strategy", "bridge",
        "--json",
    )  # fmt: skip

    (result,) = json.loads(done.out)["results"]
    assert (done.code, result["met"], result["needs"]) == (0, 2, 2), done.err


def test_replay_refuses_a_configuration_without_tools() -> None:
    Path("toolfold.yaml").write_text("tools: {tool_search: {enabled: on}}\n", "utf-8")

    assert run("replay", "--strategy", "bridge").code == 0
    refused = run("replay", "--config", "toolfold.yaml")
    assert refused.code == 2
    assert "names no servers, no functions and no APIs" in refused.err


def test_a_call_says_which_servers_do_not_run_instead_of_pointing_to_another() -> None:
    dead = {"command": sys.executable, "args": ["-c", "raise SystemExit(4)"]}
    whole = json.loads(configuration())
    whole["mcpServers"]["jira"] = dead
    Path("servers.json").write_text(json.dumps(whole), "utf-8")

    own = run("call", "jira__echo", "--config", "servers.json")
    loose = run("call", "Jira.echo", "--config", "servers.json")
    bare = run("call", "xyzzy", "--config", "servers.json")

    assert own.code == loose.code == bare.code == 1
    assert "server 'jira' failed: ended with 4" in own.err
    assert "no tool named 'Jira.echo' can be called: jira is not running: ended with 4" in loose.err
    assert "no tool named 'xyzzy'" in bare.err
    assert "jira is not running: ended with 4" in bare.err
    assert "one__echo" not in own.err + loose.err


def test_a_call_that_its_server_dies_over_says_so_and_promises_no_next_life() -> None:
    servers = {"one": {"command": sys.executable, "args": [ODD, "stdio"], "allow": ["die"]}}
    whole = {"mcpServers": servers, "serve": {"audit": "off"}}
    Path("servers.json").write_text(json.dumps(whole), "utf-8")

    call = run("call", "one__die", "--arg", "x=1", "--config", "servers.json")

    assert (call.code, call.out) == (1, "")
    assert "error: one__die failed: the server 'one' died over it" in call.err
    assert "hint: it may have had effects: look what has become of it" in call.err
    assert "again: try once more" not in call.err


def _with_functions_beside(**serve: Any) -> None:
    Path("shop_tools.py").write_text(
        'def get_price(item: str) -> str:\n    """Say what it costs."""\n    return "3.50"\n',
        "utf-8",
    )
    whole = json.loads(configuration(core=["one__ech?"]))
    whole |= {"functions": {"shop": "./shop_tools.py"}, "serve": {"audit": "off", **serve}}
    Path("servers.json").write_text(json.dumps(whole), "utf-8")


def test_a_core_tool_of_a_server_that_is_yet_to_start_is_not_said_to_be_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _with_functions_beside()

    listed = run("list", "--config", "servers.json")
    called = run("call", "shop__get_price", "--arg", "item=milk", "--config", "servers.json")

    assert (listed.code, called.code, called.out) == (0, 0, "3.50\n")
    assert caplog.messages == []


def test_a_call_that_wants_a_yes_says_how_to_give_it_where_nobody_can_be_asked() -> None:
    _with_functions_beside(destructive="ask")
    asked = ("call", "shop__get_price", "--arg", "item=milk", "--config", "servers.json")

    refused, answered = run(*asked), run(*asked, "--json")

    assert refused == Ran(
        1,
        "",
        "error: shop__get_price was not called: it may destroy something, and there is no "
        "terminal to ask at\n\nhint: give --yes if it may run\n",
    )
    assert (answered.code, json.loads(answered.out)["isError"]) == (1, True)
    assert run(*asked, "--yes") == Ran(0, "3.50\n", "")
