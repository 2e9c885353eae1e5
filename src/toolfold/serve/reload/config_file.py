"""The file that a gateway was configured by, looked at before it is read again.

A file that has become something else since the start, a link, a pipe or another user's, is
not read: whoever could put it there need not be whoever may configure the gateway.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import NamedTuple

from toolfold.errors import ConfigError
from toolfold.settings.file import FILE_LIMIT

__all__ = ["ConfigFile", "Look"]


class Look(NamedTuple):
    """What changes whenever a file is written or replaced."""

    modified: int
    size: int
    number: int


class ConfigFile:
    """The file.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._was_link = path.is_symlink()
        self._owner = _owner(path)

    def look(self) -> Look | None:
        """Return how the file looks from outside; None where there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return Look(found.st_mtime_ns, found.st_size, found.st_ino)

    def digest(self) -> str | None:
        """Return what names its content; None where it is not one that may be read."""
        try:
            self.check()
            with self.path.open("rb") as file:
                return hashlib.sha256(file.read(FILE_LIMIT + 1)).hexdigest()
        except (OSError, ConfigError):
            return None

    def check(self) -> None:
        """Refuse a file that is no longer what it was at the start.

        Raises:
            ConfigError: It is gone, a link, no plain file, another user's or too large.
        """
        try:
            found = self.path.stat()
            is_link = self.path.is_symlink()
        except OSError as error:
            raise self._refused(error.strerror or "it cannot be looked at") from None
        if is_link and not self._was_link:
            raise self._refused("it has become a link since the start")
        if not stat.S_ISREG(found.st_mode):
            raise self._refused("it is no plain file")
        trusted = (self._owner, 0, os.geteuid()) if os.name == "posix" else (found.st_uid,)
        if found.st_uid not in trusted:
            raise self._refused("it has become another user's since the start")
        if found.st_size > FILE_LIMIT:
            raise self._refused(f"it has more than {FILE_LIMIT // 2**20} MiB")

    def _refused(self, why: str) -> ConfigError:
        return ConfigError(
            f"`{self.path}` is not read again: {why}",
            hint="put the file back, or restart the gateway",
        )


def _owner(path: Path) -> int:
    try:
        return path.stat().st_uid
    except OSError:
        return -1
