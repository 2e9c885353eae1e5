"""`toolfold._files`: a file is replaced whole, or not at all."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold._files import replace_file, replacing

WINDOWS = sys.platform == "win32"
POSIX = pytest.mark.skipif(WINDOWS, reason="permission bits are POSIX's")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("durable", [True, False])
def test_a_new_file_is_its_owners_alone_and_so_is_a_folder_made_for_it(
    tmp_path: Path, durable: bool
) -> None:
    file = tmp_path / "new" / "state.json"

    replace_file(file, b"one", durable=durable)

    assert file.read_bytes() == b"one"
    assert WINDOWS or (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert [one.name for one in file.parent.iterdir()] == ["state.json"]


@POSIX
def test_a_mode_is_given_whatever_the_old_file_and_the_umask_say(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")
    file.chmod(0o400)
    before = os.umask(0o077)
    try:
        replace_file(file, b"new", durable=True, mode=0o664)
    finally:
        os.umask(before)

    assert (file.read_bytes(), mode(file)) == (b"new", 0o664)


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5))
def test_the_last_content_stands_and_nothing_beside_it(contents: list[bytes]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a"
        for content in contents:
            replace_file(file, content, durable=False)

        assert file.read_bytes() == contents[-1]
        assert list(Path(folder).iterdir()) == [file]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_where_writing_fails_the_old_content_stays_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")

    with pytest.raises(error), replacing(file, durable=True) as new:
        new.write(b"half")
        raise error

    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_where_the_place_cannot_be_taken_nothing_is_left_behind(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "inside").touch()

    with pytest.raises(OSError, match=r".+"):
        replace_file(folder, b"new", durable=False)

    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.skipif(WINDOWS or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError):
            replace_file(tmp_path / "a", b"new", durable=False)
    finally:
        tmp_path.chmod(0o700)


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    with pytest.raises(OSError, match=r".+"):
        replace_file(tmp_path / "a" / "b", b"new", durable=False)

    assert [one.name for one in tmp_path.iterdir()] == ["a"]


@POSIX
def test_a_link_is_replaced_and_what_it_led_to_stays(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)

    replace_file(link, b"new", durable=False)

    assert not link.is_symlink()
    assert (link.read_bytes(), real.read_bytes()) == (b"new", b"old")


@POSIX
def test_a_writer_that_is_killed_leaves_the_old_content(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")
    code = """
import sys
from pathlib import Path
from toolfold._files import replacing
with replacing(Path(sys.argv[1]), durable=False) as new:
    new.write(b"half" * 100_000)
    new.flush()
    print("half", flush=True)
    sys.stdin.read()
"""
    writer = subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"half\n"
        writer.send_signal(signal.SIGKILL)
        writer.wait(10)

    assert file.read_bytes() == b"old"


def test_a_reader_sees_only_whole_contents_while_two_write(tmp_path: Path) -> None:
    file = tmp_path / "a"
    contents = [letter * 200_000 for letter in (b"a", b"b")]
    replace_file(file, contents[0], durable=False)

    def write(content: bytes) -> None:
        for _ in range(30):
            replace_file(file, content, durable=False)

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    seen: set[bytes] = set()
    while any(writer.is_alive() for writer in writers):
        seen.add(file.read_bytes())
    for writer in writers:
        writer.join()

    assert seen <= set(contents)
