"""Nothing breaks on a narrow terminal: what is ours to wrap is wrapped, at 50 columns too."""

from __future__ import annotations

import json
import os
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from support.terminals import ran_on_terminal
from toolfold.chat._loop_thread import LoopThread
from toolfold.cli import main
from toolfold.cli.main import _COMMANDS  # pyright: ignore[reportPrivateUsage]
from toolfold.evaluation.trace import TRACES
from toolfold.serve.control.control_socket import ControlSocket
from toolfold.tool import Json

TOOLS = [
    {
        "name": f"warehouse__reorganise_everything_{place}",
        "description": "Move pallets, boxes and whole shelves about until all of it fits. "
        + "It takes a while. " * 20,
        "parameters": {
            "type": "object",
            "properties": {f"parameter_{i}": {"type": "string"} for i in range(12)},
        },
        "server": "warehouse",
    }
    for place in range(4)
]
GATEWAY = {
    "mcpServers": {},
    "serve": {
        "tokens": [
            {"name": "the-team-that-reviews", "sha256": "ab" * 32, "allow": ["@github", "@jira"],
             "deny": ["*delete*", "*merge*"], "read_only": True, "tenant": "acme"},
        ]
    },
}  # fmt: skip
CLIENT = {"mcpServers": {"a-server-with-a-name-of-many-words": {"command": "serve"}}}
TRACE = str(TRACES / "home.jsonl")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps(CLIENT), encoding="utf-8")
    Path("gateway.json").write_text(json.dumps(GATEWAY), encoding="utf-8")
    Path("tools.jsonl").write_text("\n".join(map(json.dumps, TOOLS)), encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--catalog", "tools.jsonl"),
        ("list",),
        ("check", "--catalog", "tools.jsonl"),
        ("search", "move pallets | send mail", "--catalog", "tools.jsonl", "--explain"),
        ("search", "qwertz", "--explain"),
        ("fold", "--catalog", "tools.jsonl", "--enabled", "on", "--diff"),
        ("eval", "--limit", "5"),
        ("eval", "--limit", "5", "--by-category", "--floor-curve"),
        ("ab", "--list"),
        ("replay", TRACE, "--strategy", "bridge"),
        ("memory", "show"),
        ("enrich", "--catalog", "tools.jsonl", "--model", "any", "--dry-run"),
        ("import", "--list"),
        ("install", "--list"),
        ("trust",),
        ("status",),
        ("tokens", "list", "--config", "gateway.json"),
        ("tokens", "create", "a laptop", "--config", "gateway.json"),
        ("servers", "list"),
        ("reload",),
        ("serch", "a word"),
        ("list", "--catalog", "no-such-file-in-this-folder-whatever-one-looks-for.jsonl"),
    ],
    ids=" ".join,
)
def test_no_line_of_a_command_is_wider_than_the_terminal(arguments: tuple[str, ...]) -> None:
    shown = ran_on_terminal(50, *arguments)

    assert shown.too_wide(50) == []
    assert len(shown.lines) > 1


@pytest.mark.parametrize("command", sorted(_COMMANDS))
def test_help_fits_but_for_the_examples_one_copies(command: str) -> None:
    shown = ran_on_terminal(50, command, "--help")

    wide = [line for line in shown.too_wide(50) if not line.startswith("    toolfold ")]
    assert (shown.code, [line for line in wide if "| toolfold" not in line]) == (0, [])


def test_where_options_have_no_room_beside_them_their_meaning_stands_below() -> None:
    lines = ran_on_terminal(50, "list", "--help").lines

    assert lines[lines.index("  --deny PATTERN") :][:3] == [
        "  --deny PATTERN",
        "      Leave matching tools out; repeatable, wins",
        "      over --allow",
    ]


def test_a_table_that_is_too_wide_is_a_block_for_each_row() -> None:
    narrow = ran_on_terminal(50, "replay", TRACE, "--strategy", "bridge").lines
    wide = ran_on_terminal(100, "replay", TRACE, "--strategy", "bridge").lines

    assert narrow[0] == "home  bridge"
    assert narrow[1].startswith("  met ")
    assert wide[0].split() == [
        "trace", "strategy", "met", "trips", "read", "new", "written", "largest",
    ]  # fmt: skip


def test_the_width_that_columns_names_is_taken_for_that_of_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")

    assert ran_on_terminal(200, "list").too_wide(40) == []


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_where_no_colours_are_wanted_nothing_but_text_is_written(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)

    assert "\x1b" not in ran_on_terminal(80, "search", "send mail").text
    assert "\x1b" not in ran_on_terminal(80, "lst").text


REPORT: dict[str, Json] = {
    "transport": "http",
    "address": "http://127.0.0.1:8484/a/path/that/is/rather/long/mcp",
    "since": "2026-03-02T09:00:00+00:00",
    "clients": 12,
    "calls": 123_456,
    "config": "/home/somebody/projects/of/this/year/toolfold.yaml",
    "servers": [
        {"name": "filesystem", "state": "ready", "tools": 14, "calls": 31_337, "restarts": 2},
        {
            "name": "github-enterprise",
            "state": "failed",
            "cause": "the program ended with code 1: it said that its token is not valid any more",
            "retry_in": 12.5,
        },
    ],
}


def test_status_fits(tmp_path: Path) -> None:
    async def status(_: object) -> Json:
        return REPORT

    with LoopThread() as loop:
        socket = ControlSocket(tmp_path / "s", {"status": status})
        loop.run(socket.__aenter__())
        shown = ran_on_terminal(50, "status", "--state-dir", str(tmp_path / "s"))
        loop.run(socket.__aexit__())

    assert (shown.code, shown.too_wide(50)) == (0, [])
    assert shown.lines[-7:] == [
        "  filesystem         ready, 14 tools, 31,337",
        "    calls, restarted 2×",
        "  github-enterprise  failed, 0 tools, 0 calls, the",
        "    program ended with code 1: it said that its",
        "    token is not valid any more, tried again in 13",
        "    s",
        "",
    ]


@pytest.mark.parametrize(
    ("words", "verb", "result"),
    [
        (("servers", "list"), "servers.list", {"servers": REPORT["servers"], "left_out": []}),
        (("servers", "logs", "one"), "servers.logs", {
            "lines": [{"at": "2026-03-02T09:00:00Z", "text": "a line that goes on and on " * 3}],
        }),
        (("reload",), "reload", {
            "servers": {"added": ["github-enterprise", "filesystem"], "removed": ["a", "b", "c"]},
            "widened": ["server 'github-enterprise' is new", "server 'filesystem' is new"],
        }),
    ],
)  # fmt: skip
def test_what_a_running_gateway_answers_fits(
    tmp_path: Path, words: tuple[str, ...], verb: str, result: Json
) -> None:
    async def answered(_: object) -> Json:
        return result

    with LoopThread() as loop:
        socket = ControlSocket(tmp_path / "s", {verb: answered})
        loop.run(socket.__aenter__())
        shown = ran_on_terminal(50, *words, "--state-dir", str(tmp_path / "s"))
        loop.run(socket.__aexit__())

    assert (shown.code, shown.too_wide(50)) == (0, [])
    assert len(shown.lines) > 3


def test_whoever_reads_no_further_ends_a_command_well() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with (
        open(writer, "w", encoding="utf-8") as stream,
        redirect_stdout(stream),
        pytest.raises(SystemExit) as ended,
    ):
        main(["list", "--catalog", "tools.jsonl"])

    assert ended.value.code == 0
