"""`toolfold memory`: what searches led to, shown, carried and forgotten."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from toolfold.cli import main
from toolfold.memory import Memory, MemoryRecord, Use

DAY = 86_400.0
START = 1_790_000_000.0  # 2026-09-21
RECORDS = (
    MemoryRecord("open a pull request", "forge__open_pull", "d1", "ann", 3, 0, START),
    MemoryRecord("mail the team", "mail__send", "d2", "ann", 1, 2, START + 2 * DAY),
    MemoryRecord("merge the branch", "forge__open_pull", "d3", "bob", 1, 0, START + 3 * DAY),
)


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def file() -> Path:
    path = Path("memory.sqlite")
    with_records(path)
    return path


def with_records(path: Path) -> None:
    memory = Memory(path, tell=lambda _: None)
    memory.imported([record.line() for record in RECORDS])
    memory.together("ann", ("forge__open_pull", "d1"), ("mail__send", "d2"), START)
    memory.close()


def run(*arguments: str, file: str = "memory.sqlite", stdin: str | None = None) -> Ran:
    name, *rest = arguments
    result = CliRunner().invoke(main, ["memory", name, "--file", file, *rest], input=stdin)
    return Ran(result.exit_code, result.stdout, result.stderr)


def exported(*arguments: str) -> list[str]:
    return [json.loads(line)["request"] for line in run("export", *arguments).out.splitlines()]


def test_show_counts_what_is_there_and_says_what_it_weighs_and_why(file: Path) -> None:
    assert run("show") == Ran(
        0,
        "memory.sqlite\n"
        "3 requests of 2 callers led to 2 tools; 5 calls worked, 2 did not; "
        "2026-09-21 to 2026-09-24\n"
        "weight 0: with fewer than 8 requests nothing can be told\n"
        "tool              requests  worked  failed        last\n"
        "forge__open_pull         2       4       0  2026-09-24\n"
        "mail__send               1       1       2  2026-09-23\n",
        "",
    )


def test_show_as_json_and_for_one_caller(file: Path) -> None:
    told = json.loads(run("show", "--json", "--principal", "bob").out)

    assert told == {
        "file": "memory.sqlite",
        "requests": 1,
        "worked": 1,
        "failed": 0,
        "principals": 1,
        "oldest": START + 3 * DAY,
        "newest": START + 3 * DAY,
        "weight": 0.0,
        "why": "with fewer than 8 requests nothing can be told",
        "tools": [
            {
                "name": "forge__open_pull",
                "forms": 1,
                "requests": 1,
                "worked": 1,
                "failed": 0,
                "last": START + 3 * DAY,
            }
        ],
    }


def test_a_memory_that_is_not_there_yet_is_empty_and_stays_away() -> None:
    assert run("show") == Ran(0, "memory.sqlite\nnothing is remembered yet\n", "")
    assert run("export") == Ran(0, "", "")
    assert run("clear", "--yes") == Ran(0, "forgot 0 records\n", "")
    assert list(Path().iterdir()) == []


def test_what_is_exported_can_be_imported_elsewhere(file: Path) -> None:
    out = run("export", "--out", "learnt.jsonl")
    tried = run("import", "learnt.jsonl", "--dry-run", file="other.sqlite")
    is_there = Path("other.sqlite").exists()
    taken = run("import", "learnt.jsonl", file="other.sqlite")
    again = run("export", file="other.sqlite")

    assert out == Ran(0, "", "3 records to learnt.jsonl\n")
    assert tried == Ran(0, "3 records of 2 tools would be kept in other.sqlite\n", "")
    assert not is_there
    assert taken == Ran(0, "3 records of 2 tools kept in other.sqlite\n", "")
    assert sorted(again.out.splitlines()) == sorted(Path("learnt.jsonl").read_text().splitlines())


def test_what_is_imported_may_become_anothers(file: Path) -> None:
    lines = run("export").out
    ran = run("import", "-", "--principal", "team", "--json", file="other.sqlite", stdin=lines)

    assert json.loads(ran.out) == {
        "file": "other.sqlite", "records": 3, "tools": 2, "kept": True,
    }  # fmt: skip
    owners = {
        json.loads(x)["principal"] for x in run("export", file="other.sqlite").out.split("\n") if x
    }
    assert owners == {"team"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[]", "no record of a memory: '[]'"),
        ("{", "no record of a memory: '{'"),
        ('{"request": "a", "tool": ""}', "no record of a memory: "),
        ("x" * 70_000, "more than 65,536 bytes"),
    ],
)
def test_a_line_that_is_none_is_told_of_by_its_number_and_nothing_is_kept(
    line: str, problem: str
) -> None:
    Path("bad.jsonl").write_text(f"{RECORDS[0].line()}\n\n{line}\n")

    ran = run("import", "bad.jsonl")

    assert ran.code == 2
    assert f"error: `bad.jsonl`, line 3: {problem}" in ran.err
    assert "hint: " in ran.err
    assert not Path("memory.sqlite").exists()


def test_secrets_are_in_no_export(file: Path) -> None:
    memory = Memory(file)
    memory.learn(Use("open a pull request with ghp_abcdefghijklmnopqrstuvwxyz0123456789", "a", "d"))
    memory.close()

    assert "ghp_" not in run("export").out
    assert b"ghp_" not in file.read_bytes()


def test_clear_forgets_a_part_and_leaves_the_rest(file: Path) -> None:
    assert run("clear", "--tool", "mail__send", "--yes").out == "forgot 1 record\n"
    assert exported() == ["open a pull request", "merge the branch"]
    assert run("clear", "--principal", "bob", "--yes").out == "forgot 1 record\n"
    assert exported() == ["open a pull request"]
    assert run("clear", "--older-than", "0", "--yes", "--json").out == (
        '{"file": "memory.sqlite", "forgotten": 1}\n'
    )
    assert exported() == []


@pytest.mark.parametrize(
    ("arguments", "gone"),
    [
        (("--tool", "mail__send"), b"mail__send"),
        (("--principal", "ann"), b"ann"),
        ((), b"forge"),
    ],
)
def test_what_is_forgotten_is_nowhere_in_the_files(
    file: Path, arguments: tuple[str, ...], gone: bytes
) -> None:
    before = b"".join(path.read_bytes() for path in Path().iterdir())
    run("clear", "--yes", *arguments)
    after = b"".join(path.read_bytes() for path in Path().iterdir())

    assert gone in before
    assert gone not in after


def test_clear_asks_first_and_without_a_person_wants_a_yes(file: Path) -> None:
    ran = run("clear", "--tool", "mail__send")

    assert ran == Ran(
        1,
        "",
        "error: nobody is there to be asked whether to forget 1 record for good\n\n"
        "hint: give --yes\n",
    )
    assert len(exported()) == 3


def test_a_damaged_file_is_told_of_with_the_fix_and_cleared_by_name() -> None:
    Path("memory.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 8_000)

    shown, cleared = run("show"), run("clear", "--yes")

    assert shown.code == 1
    assert shown.err == (
        "error: the memory in `memory.sqlite` is damaged: file is not a database\n\n"
        "hint: `toolfold memory clear` removes it; whoever learns next puts it aside and begins "
        "anew\n"
    )
    assert cleared == Ran(0, "forgot 0 records\n", "")
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("command", [("show",), ("export",), ("clear", "--yes")])
def test_what_is_no_memory_is_not_touched(command: tuple[str, ...]) -> None:
    Path("diary.txt").write_text("my diary")
    Path("folder").mkdir()
    with sqlite3.connect("theirs.sqlite") as theirs:
        theirs.execute("CREATE TABLE diary (day TEXT)")
    theirs.close()
    before = Path("theirs.sqlite").read_bytes()

    for name in ("diary.txt", "theirs.sqlite", "folder"):
        assert run(*command, file=name) == Ran(
            1, "", f"error: `{name}` is no memory\n\nhint: give another file with --file\n"
        )
    assert Path("diary.txt").read_text() == "my diary"
    assert Path("theirs.sqlite").read_bytes() == before


def test_a_memory_in_use_can_be_shown_exported_and_cleared(file: Path) -> None:
    running = Memory(file, tell=lambda _: None)
    assert running.size == 3
    running.learn(Use("send a fax", "fax__send", "d9"))
    running.flush()

    assert "send a fax" in exported()
    assert run("clear", "--yes").out == "forgot 4 records\n"
    assert running.size == 0
    running.learn(Use("send a letter", "post__send", "d9"))
    running.close()
    assert exported() == ["send a letter"]


def test_the_file_is_the_one_that_the_gateway_would_use(tmp_path: Path) -> None:
    Path("toolfold.yaml").write_text(f"serve:\n  state_dir: {tmp_path}/state\n")
    result = CliRunner().invoke(main, ["memory", "show", "--config", "toolfold.yaml"])

    assert result.stdout.splitlines()[0] == f"{tmp_path}/state/memory.sqlite"
