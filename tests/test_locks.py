"""`toolfold._locks`: one holder at a time, and none that stays."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toolfold._locks import file_lock

HOLDER = """
import sys
from pathlib import Path
from toolfold._locks import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(lock: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_a_lock_that_another_process_holds_is_waited_for_and_no_longer_than_told(
    tmp_path: Path,
) -> None:
    lock = tmp_path / "a.lock"
    with holder(lock) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"held"
        with pytest.raises(TimeoutError), file_lock(lock, 0.05):
            pass
        other.kill()  # however its holder ends, a lock is given back
        with file_lock(lock, 10):
            pass

    assert lock.exists()  # to remove it would let two processes hold two of them


def test_threads_of_one_process_take_turns(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0", encoding="utf-8")

    def add() -> None:
        for _ in range(20):
            with file_lock(tmp_path / "a.lock", 30):
                count.write_text(str(int(count.read_text(encoding="utf-8")) + 1), encoding="utf-8")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert count.read_text(encoding="utf-8") == "80"


def test_a_lock_is_given_back_where_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), file_lock(tmp_path / "a.lock"):
        raise ValueError("no")

    with file_lock(tmp_path / "a.lock", 0.05):
        pass


def test_a_lock_in_a_folder_that_is_not_there_is_an_error_and_not_waited_for(
    tmp_path: Path,
) -> None:
    with pytest.raises(FileNotFoundError), file_lock(tmp_path / "none" / "a.lock"):
        pass
