"""Files of other programs, changed so that nothing can be lost.

A whole new file is put in the old one's place at once, with its mode kept; before, a copy
is made beside it, and a copy that is there already is never written over.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from toolfold._files import PRIVATE, replace_file
from toolfold.errors import ToolfoldError
from toolfold.setup.editing import read_text

__all__ = ["SetupError", "back_up", "backups", "next_backup", "remove", "write"]

_ENDING = "before-toolfold"


class SetupError(ToolfoldError):
    """A file could not be changed. What was there is there still."""


def backups(path: Path) -> list[Path]:
    """Return the copies of a file, the newest first."""
    return list(reversed(list(_existing(_real(path)))))


def next_backup(path: Path) -> Path:
    """Return the copy that holds what the file holds now, or the name it would get."""
    path = _real(path)
    taken = list(_existing(path))
    current = path.read_bytes() if path.is_file() else b""
    for copy in reversed(taken):
        if copy.read_bytes() == current:
            return copy
    return _named(path, len(taken))


def back_up(path: Path) -> Path | None:
    """Copy a file beside itself and return the copy; None where there is no file.

    Raises:
        SetupError: It cannot be copied.
    """
    path = _real(path)
    if not path.is_file():
        return None
    copy = next_backup(path)
    if not copy.exists():
        _put(copy, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    return copy


def write(path: Path, text: str, *, expected: str) -> None:
    """Put a text in a file's place, whole and at once.

    Args:
        path: The file. A link is followed: what it leads to is replaced.
        text: The new text.
        expected: What the file must still hold; another program may have written meanwhile.

    Raises:
        SetupError: It holds something else by now, or cannot be written.
    """
    path = _real(path)
    if read_text(path) != expected:
        raise SetupError(
            f"`{path}` was changed by another program meanwhile",
            hint="close the client and run the command again; nothing was written",
        )
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else PRIVATE
    _put(path, text.encode("utf-8"), mode)


def remove(path: Path, *, expected: str) -> None:
    """Take a file away; of a link, what it leads to.

    Raises:
        SetupError: It holds something else by now, or cannot be taken away.
    """
    path = _real(path)
    write(path, "", expected=expected)
    path.unlink()


def _put(path: Path, data: bytes, mode: int) -> None:
    try:
        # The folder is another program's too: it gets what that program would have given it.
        replace_file(path, data, durable=True, mode=mode, folder_mode=0o777)
    except OSError as error:
        raise SetupError(
            f"cannot write `{path}`: {error.strerror}", hint="check the folder's permissions"
        ) from None


def _real(path: Path) -> Path:
    return path.resolve() if path.is_symlink() else path


def _existing(path: Path) -> Iterator[Path]:
    number = 0
    while (copy := _named(path, number)).exists():
        yield copy
        number += 1


def _named(path: Path, number: int) -> Path:
    ending = _ENDING if not number else f"{_ENDING}.{number}"
    return path.with_name(f"{path.name}.{ending}")
