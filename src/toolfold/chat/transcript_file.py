"""Transcripts: a conversation as JSON lines, with the secrets taken out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from toolfold.errors import ConfigError
from toolfold.redact import Redactor
from toolfold.runtime.message_json import message_to_json
from toolfold.runtime.messages import Message

__all__ = ["Transcript"]


class Transcript:
    """A file that messages are added to, readable by its owner alone where it is new.

    Args:
        file: The file.
        new: Whether it must not be there yet.
        secrets: What must not be written, beside what looks like a secret.

    Raises:
        ConfigError: It cannot be written.
    """

    def __init__(self, file: str | Path, *, new: bool = False, secrets: Iterable[str] = ()) -> None:
        self._file = file
        self._redactor = Redactor.from_environment(secrets=secrets)
        flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else os.O_APPEND)
        try:
            os.close(os.open(file, flags, 0o600))
        except OSError as error:
            raise _unwritable(file, error) from None

    def add(self, messages: Iterable[Message]) -> None:
        """Write messages at the end.

        Raises:
            ConfigError: The file cannot be written any more.
        """
        lines = [json.dumps(self._redactor.redacted(message_to_json(m))) for m in messages]
        try:
            with Path(self._file).open("a", encoding="utf-8") as out:
                out.writelines(f"{line}\n" for line in lines)
        except OSError as error:
            raise _unwritable(self._file, error) from None


def _unwritable(file: str | Path, error: OSError) -> ConfigError:
    fix = "choose another name" if isinstance(error, FileExistsError) else "check the path"
    return ConfigError(f"cannot write `{file}`: {error.strerror}", hint=fix)
