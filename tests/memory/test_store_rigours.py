"""A memory's file under rough treatment: company, damage, readers in the way, old news."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from toolfold import Settings, Tool, fold
from toolfold.answer import Answer
from toolfold.memory import Memory, StoreError, Use

TOOLS = [
    Tool("mail__send", "Send an e-mail to someone.", source="mail"),
    Tool("forge__open_pull", "Open a pull request.", source="forge"),
    Tool("forge__list_issues", "List the issues of a repository.", source="forge"),
]

WRITER = """
import sys
from pathlib import Path
from toolfold.memory import Memory, Use
path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
memory = Memory(path, tell=lambda _: None)
words = "apple pear plum fig lime kiwi peach grape lemon melon date olive".split()
for i in range(count):
    text = " ".join(words[(i * 7 + k * (i % 5 + 1)) % 12] for k in range(4)) + f" for {name} {i}"
    memory.learn(Use(text, f"tool_{name}_{i}", "d", principal=name))
    memory.flush()
    print(i, flush=True)
memory.close()
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = (sys.executable, "-c", WRITER, str(path), name, str(count))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as opened:
        return opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def searched(memory: Memory) -> Sequence[str]:
    folded = fold(TOOLS, settings=Settings(enabled="on"), memory=memory)
    answer = folded.resolve("tool_search", {"query": "send an e-mail to someone"})
    assert isinstance(answer, Answer)
    return [hit.name for hit in answer.hits]


@pytest.mark.slow
def test_many_processes_that_begin_at_once_share_one_file_and_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    processes = [writer(path, name, 15) for name in "abcd"]
    said = [process.communicate(timeout=300) for process in processes]

    assert [process.returncode for process in processes] == [0] * 4
    assert [errors for _, errors in said] == [""] * 4
    memory = Memory(path)
    assert {r.tool for r in memory.records()} == {
        f"tool_{name}_{i}" for name in "abcd" for i in range(15)
    }
    memory.close()
    assert is_sound(path)


@pytest.mark.parametrize("damage", ["cut", "zeroed", "garbage", "emptied", "folder", "link"])
def test_whatever_became_of_the_file_searches_go_on(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "memory.sqlite"
    memory = Memory(path, tell=lambda _: None)
    for i in range(30):
        memory.learn(Use(f"send letter number {i} by mail", "mail__send", TOOLS[0].digest))
    memory.close()
    content = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "zeroed":
            path.write_bytes(content[:4096] + bytes(len(content) - 4096))
        case "garbage":
            path.write_bytes(b"\xff" * len(content))
        case "emptied":
            path.write_bytes(b"")
        case "folder":
            path.unlink()
            path.mkdir()
        case _:
            path.unlink()
            path.symlink_to(tmp_path / "elsewhere")

    again = Memory(path, tell=lambda _: None)
    found = searched(again)
    again.learn(Use("send an e-mail", "mail__send", TOOLS[0].digest))
    again.flush()

    assert found[0] == "mail__send"
    assert searched(again)[0] == "mail__send"
    again.close()
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_is_cut_while_it_is_used_stops_no_search(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    memory = Memory(path, tell=lambda _: None)
    for i in range(60):
        memory.learn(Use(f"send letter number {i} by mail", "mail__send", TOOLS[0].digest))
    memory.flush()
    assert searched(memory)[0] == "mail__send"

    for suffix in ("", "-wal"):
        beside = path.with_name(path.name + suffix)
        os.truncate(beside, beside.stat().st_size // 2)
    memory.learn(Use("send an e-mail", "mail__send", TOOLS[0].digest))
    memory.flush()

    assert searched(memory)[0] == "mail__send"
    memory.close()


def test_what_cannot_be_wiped_because_somebody_reads_it_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    memory = Memory(path, tell=lambda _: None)
    memory.learn(Use("send the secret plans", "mail__send", TOOLS[0].digest))
    memory.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM requests").fetchall()
        with pytest.raises(StoreError, match="another process reads"):
            memory.clear()
        reader.execute("COMMIT")

    assert memory.clear() == 0
    memory.close()
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"secret plans" not in left


def test_an_old_export_is_not_taken_for_tools_that_are_gone(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.sqlite", tell=lambda _: None)
    then = time.time() - 60 * 86_400
    memory.learn(Use("send a letter", "mail__send", TOOLS[0].digest, at=then))
    memory.flush()

    assert [record.tool for record in memory.records()] == ["mail__send"]
    memory.close()


def test_a_tool_that_was_forgotten_gives_its_place_to_no_other(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.sqlite", tell=lambda _: None)
    ranked = '[["old","d",-0.1]]'
    line = '{"request":"send a letter","tool":"mail__send","digest":"d","ranked":' + ranked + "}"
    memory.imported([line])
    memory.forget(tool="old")
    memory.learn(Use("open a pull request", "forge__open_pull", "d"))
    memory.flush()

    assert all(record.ranked == () for record in memory.records())
    memory.close()


def test_what_was_used_together_ages_and_goes_with_its_caller(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    memory = Memory(path, tell=lambda _: None)
    memory.learn(Use("send a letter", "mail__send", "d", principal="bob"))
    memory.together("ann", ("mail__send", "d"), ("forge__open_pull", "d"))
    memory.flush()

    memory.forget(principal="ann")

    memory.close()
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"ann" not in left
    assert b"forge__open_pull" not in left
    assert b"bob" in left
