"""The file of words, and the journal beside it while it is being written.

Every answer goes to the journal as it comes, so that a process that is killed loses none;
whoever comes next takes it up. At the end both become one file, sorted by name, put in place
at once.
"""

from __future__ import annotations

import os
from pathlib import Path

from toolfold._files import replacing
from toolfold.errors import ConfigError
from toolfold.search._tool_words import (
    FILE_LIMIT,
    BadLine,
    ToolWords,
    WordsEntry,
    read_words,
    written_line,
)

__all__ = ["WordsFile"]

_MODE = 0o644


class WordsFile:
    """A file of words that is being written.

    Args:
        path: The file. What stands in it, and in its journal, is taken up.

    Raises:
        ConfigError: It cannot be read, or holds a line that is none of ours: a file that
            somebody wrote by mistake is not written over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path.with_name(f"{path.name}.part")
        words = _read(path)
        if words.bad_lines:
            raise _unusable(path, words.bad_lines[0])
        self._entries = dict(words.by_name)
        # What a killed process left may end in half a line.
        self._entries.update(_read(self.journal).by_name)
        self._has_more = False

    @property
    def words(self) -> ToolWords:
        """What is written so far."""
        return ToolWords.of(self._entries.values())

    def add(self, entry: WordsEntry) -> None:
        """Keep what was written for a tool, in the journal at once.

        Raises:
            ConfigError: The journal cannot be written.
        """
        self._entries[entry.name] = entry
        self._has_more = True
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
            try:
                # A line break on both sides: the last line may be half of one.
                os.write(descriptor, b"\n" + written_line(entry) + b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _unwritable(self.journal, error) from None

    def close(self) -> None:
        """Put the file in place and drop the journal; where there is none, all is as it was.

        Raises:
            ConfigError: It cannot be written; the journal stays.
        """
        if not self._has_more and not self.journal.exists():
            return
        # Another process may have written meanwhile.
        entries = {**_read(self.path).by_name, **_read(self.journal).by_name, **self._entries}
        try:
            with replacing(self.path, durable=True, mode=_MODE) as file:
                for name in sorted(entries):
                    file.write(written_line(entries[name]) + b"\n")
            self.journal.unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(self.path, error) from None


def _read(path: Path) -> ToolWords:
    try:
        if not path.exists():
            return ToolWords.of(())
        if path.stat().st_size > FILE_LIMIT:
            raise ConfigError(
                f"`{path}` has more than {FILE_LIMIT // 1024 // 1024} MiB",
                hint="give another file with --out",
            )
        return read_words(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigError(
            f"cannot read `{path}`: {error.strerror}", hint="give another file with --out"
        ) from None


def _unusable(path: Path, line: BadLine) -> ConfigError:
    return ConfigError(
        f"`{path}`, line {line.number}: {line.problem}",
        hint="mend or remove the line, or give another file with --out",
    )


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot write `{path}`: {error.strerror}", hint="give another file with --out"
    )
