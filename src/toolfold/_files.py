"""A file put in place at once.

Whoever reads it sees the old content or the new one, whole; a process that is killed while
writing leaves the old one. The new content is written to a file of its own in the same
folder, which then takes the name. Nothing is left behind where that fails.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

__all__ = ["PRIVATE", "replace_file", "replacing"]

PRIVATE = 0o600
"""The mode of a file that its owner alone may read."""

_PRIVATE_FOLDER = 0o700


@contextmanager
def replacing(
    path: Path, *, durable: bool, mode: int = PRIVATE, folder_mode: int = _PRIVATE_FOLDER
) -> Generator[IO[bytes]]:
    """Write a file that takes its place when the block ends, and not where it raises.

    Args:
        path: The file. Where it is a link, the link is replaced; resolve it first to
            replace what it leads to.
        durable: Whether it must survive the machine losing power at any moment. It costs
            a wait for the disk. A file that is read again and made again where it is
            damaged can do without; one that holds what nobody else has, cannot: without
            it the name may lead to an empty file after the power is back.
        mode: The permissions that it gets.
        folder_mode: The permissions of its folder, where that is made.

    Raises:
        OSError: It cannot be written. What was there is there still.
    """
    path.parent.mkdir(mode=folder_mode, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    made = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if mode != PRIVATE:  # with which it was made
            made.chmod(mode)
        made.replace(path)
    except BaseException:
        with suppress(OSError):
            made.unlink()
        raise
    if durable:
        _sync_folder(path.parent)


def replace_file(
    path: Path,
    data: bytes,
    *,
    durable: bool,
    mode: int = PRIVATE,
    folder_mode: int = _PRIVATE_FOLDER,
) -> None:
    """Put data in a file's place; see `replacing`.

    Raises:
        OSError: It cannot be written. What was there is there still.
    """
    with replacing(path, durable=durable, mode=mode, folder_mode=folder_mode) as file:
        file.write(data)


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk too, where the system lets a folder be asked for that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
