"""The file that a memory is kept in: private, forgetful when asked, and never in the way."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.memories import TOPICS, UNSEEN, found_first, opaque_tools, taught, teach
from toolfold import MemorySettings
from toolfold.memory import Memory, Use, memory_file, open_memory
from toolfold.redact import Redactor

SECRET = "sk-" + "q9W8e7R6" * 4


def bytes_of(path: Path) -> bytes:
    """Return all that stands in a file and in what SQLite keeps beside it."""
    files = sorted(path.parent.glob(f"{path.name}*"))
    return b"".join(file.read_bytes() for file in files)


def test_what_is_learnt_outlives_the_process(tmp_path: Path) -> None:
    taught(tmp_path / "m.sqlite").close()

    assert found_first(Memory(tmp_path / "m.sqlite")) == len(UNSEEN)


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    memory = taught(tmp_path / "state" / "m.sqlite")

    files = list((tmp_path / "state").iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    memory.close()


def test_no_file_is_made_before_something_is_learnt(tmp_path: Path) -> None:
    assert found_first(Memory(tmp_path / "m.sqlite")) <= 1

    assert not list(tmp_path.iterdir())


def test_the_file_is_where_it_was_named_though_the_program_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    memory = Memory(Path("m.sqlite"))

    monkeypatch.chdir("elsewhere")
    teach(memory)
    memory.close()

    assert (tmp_path / "m.sqlite").is_file()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_first_write_is_told_with_its_path(tmp_path: Path) -> None:
    told: list[str] = []
    memory = Memory(tmp_path / "m.sqlite", tell=told.append)
    teach(memory)

    assert len(told) == 1
    assert str(tmp_path / "m.sqlite") in told[0]


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    memory = Memory(path, redactor=Redactor(["correct horse"]))
    memory.learn(Use(f"log in with {SECRET} and correct horse", "svc_01", "d"))
    memory.close()

    assert b"log in with" in bytes_of(path)
    assert SECRET.encode() not in bytes_of(path)
    assert b"correct horse" not in bytes_of(path)


# ---- forgetting


def test_after_clearing_nothing_is_left_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    memory = taught(path)
    assert b"airline seat" in bytes_of(path)

    assert memory.clear() == 30

    left = bytes_of(path)
    words = [text.encode() for texts in TOPICS.values() for text in texts]
    names = [tool.digest.encode() for tool in opaque_tools()]
    assert not [word for word in (*words, *names, b"ann", b"svc_0") if word in left]
    assert found_first(memory) <= 1


@pytest.mark.parametrize(
    ("what", "gone", "stays"),
    [
        ({"tool": "svc_01"}, b"airline seat", b"resize the photo"),
        ({"principal": "ann"}, b"airline seat", b"by somebody else"),
    ],
)
def test_a_part_is_forgotten_for_good(
    tmp_path: Path, what: dict[str, str], gone: bytes, stays: bytes
) -> None:
    path = tmp_path / "m.sqlite"
    memory = taught(path)
    memory.learn(Use("book it by somebody else", "svc_02", "d", principal="ben"))

    memory.forget(**what)  # pyright: ignore[reportArgumentType]

    assert gone not in bytes_of(path)
    assert stays in bytes_of(path)


def test_what_is_older_than_a_moment_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    memory = Memory(path)
    memory.learn(Use("resize the old photo", "svc_04", "d", at=1_000.0))
    memory.learn(Use("order a new pizza", "svc_07", "d"))

    assert memory.forget(before=time.time() - 60) <= 1

    assert b"old photo" not in bytes_of(path)
    assert b"new pizza" in bytes_of(path)


def test_what_is_too_old_leaves_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    memory = Memory(path, age_days=2)
    memory.learn(Use("resize the old photo", "svc_04", "d", at=time.time() - 5 * 86_400))
    memory.learn(Use("order a new pizza", "svc_07", "d"))
    memory.close()

    again = Memory(path, age_days=2)
    again.learn(Use("dim the lights", "svc_09", "d"))
    again.flush()

    assert b"old photo" not in bytes_of(path)


def test_tools_that_a_catalog_lacks_are_forgotten_when_asked(tmp_path: Path) -> None:
    from toolfold import Catalog

    path = tmp_path / "m.sqlite"
    memory = taught(path)

    memory.forget_absent(Catalog(opaque_tools()[1:]))

    assert b"airline seat" not in bytes_of(path)
    assert opaque_tools()[0].digest.encode() not in bytes_of(path)
    assert b"resize the photo" in bytes_of(path)


def test_no_more_is_kept_than_was_allowed(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.sqlite", bound=10)
    for number in range(600):
        tool = opaque_tools()[number % 10]
        request = f"{TOPICS[tool.name][number % 3]} {'abcdefghij'[number % 7] * 3}{number}"
        memory.learn(Use(request, tool.name, tool.digest, at=time.time() + number))
        if number % 100 == 0:
            memory.flush()
    memory.flush()

    assert memory.size <= 10 + 256


# ---- trouble


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_damaged_file_is_put_aside_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.sqlite"
    path.write_bytes(b"this is no database, though it is long enough to be one" * 40)
    memory = Memory(path)
    teach(memory)

    assert found_first(memory) == len(UNSEEN)
    assert (tmp_path / "m.sqlite.damaged").exists()
    assert len(warnings(caplog)) == 1
    memory.clear()
    assert not (tmp_path / "m.sqlite.damaged").exists()


def test_a_file_that_is_damaged_while_it_is_used_stops_no_search(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.sqlite"
    memory = taught(path)
    for file in tmp_path.iterdir():
        size = file.stat().st_size
        with file.open("r+b") as opened:
            opened.write(b"\x07" * size)

    memory.learn(Use("dim the lights again", "svc_09", "d"))
    memory.flush()

    assert found_first(memory) >= 0
    assert len(warnings(caplog)) <= 2


@pytest.mark.skipif(os.name != "posix", reason="links and owners are POSIX'")
@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_a_file_that_somebody_else_chose_is_not_written(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, other = tmp_path / "m.sqlite", tmp_path / "other"
    if kind == "link":
        other.write_text("precious", "utf-8")
        path.symlink_to(other)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    memory = Memory(path)
    teach(memory)

    assert found_first(memory) == len(UNSEEN)  # for as long as the process lasts
    assert memory.path is None
    assert len(warnings(caplog)) == 1
    assert kind != "link" or other.read_text("utf-8") == "precious"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_stops_no_search(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o500)
    memory = Memory(folder / "m.sqlite")
    teach(memory)

    assert found_first(memory) == len(UNSEEN)
    assert len(warnings(caplog)) == 1


def test_a_file_that_another_process_holds_stops_no_search(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    memory = taught(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    memory.learn(Use("dim the lights again", "svc_09", "d"))

    began = time.perf_counter()
    assert found_first(memory) == len(UNSEEN)
    assert time.perf_counter() - began < 1.5

    holder.execute("ROLLBACK")
    holder.close()
    memory.close()


_WRITER = """
import sys
from pathlib import Path
from toolfold.memory import Memory, Use
memory = Memory(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    memory.learn(Use(f"order pizza number {number} of {number % 7} kinds", f"tool_{number}", "d"))
    if number % 10 == 0:
        memory.flush()
        print(number, flush=True)
"""


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        kept = 0
        for line in process.stdout:
            kept = int(line)
            if kept >= 50:
                process.send_signal(signal.SIGKILL)
                break
    memory = Memory(path)

    assert len(list(memory.records())) >= kept
    check = sqlite3.connect(path)
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


_FULL = """
import resource, signal, sys, logging
from pathlib import Path
from toolfold.memory import Memory, Use
logging.basicConfig(level=logging.WARNING)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
memory = Memory(Path(sys.argv[1]))
memory.learn(Use("order a pizza", "tool", "d")); memory.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
for number in range(400):
    memory.learn(Use(f"order pizza {number} with {'cheese ham olive basil'.split()[number % 4]}",
        f"tool_{number}", "d"))
    if number % 50 == 0: memory.flush()
memory.flush()
print(memory.size)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX'")
def test_a_full_disk_loses_what_is_new_and_says_so_once(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert 1 <= int(done.stdout) < 400
    assert 1 <= done.stderr.count("WARNING") <= 2
    check = sqlite3.connect(path)
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


# ---- as settings have it


def test_settings_say_where_for_whom_and_whether(tmp_path: Path) -> None:
    assert open_memory(MemorySettings(enabled="off"), tmp_path) is None
    assert memory_file(MemorySettings(), tmp_path) == tmp_path / "memory.sqlite"
    assert memory_file(MemorySettings(path="/a/b.sqlite"), tmp_path) == Path("/a/b.sqlite")
    shares = {
        (share, has_tokens): opened.share
        for share in ("auto", "principal", "all")
        for has_tokens in (False, True)
        if (opened := open_memory(MemorySettings(share=share), tmp_path, has_tokens=has_tokens))
    }
    assert shares[("auto", False)] == shares[("all", True)] == "all"
    assert shares[("auto", True)] == shares[("principal", False)] == "principal"
