"""What passes the proxy, written down with its secrets taken out.

A file for each request for an answer: what the client sent and what it got, in its own dialect,
and what was counted. No header is in it. `toolfold replay` reads the files.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from threading import BoundedSemaphore

from toolfold._json_values import parse
from toolfold.dispatch.records import RequestRecord
from toolfold.errors import ConfigError
from toolfold.redact import Redactor
from toolfold.tool import Json

__all__ = ["FORMAT", "Traffic"]

FORMAT = 1
"""The number under `toolfold_proxy` in every file."""

_WAITING_AT_MOST = 64

_log = logging.getLogger(__name__)


class Traffic:
    """A folder of requests and answers, readable by its owner alone.

    What cannot be written in time is left out, and the log says so once: nobody waits for it.

    Args:
        folder: The folder; it is made.
        secrets: What must not be written, beside what looks like a secret.

    Raises:
        ConfigError: It cannot be written into.
    """

    def __init__(self, folder: Path, *, secrets: Iterable[str] = ()) -> None:
        self._folder = folder
        self._redactor = Redactor.from_environment(secrets=secrets)
        self._numbers = count(1)
        self._writer = ThreadPoolExecutor(1, "toolfold-traffic")
        self._room = BoundedSemaphore(_WAITING_AT_MOST)
        self._is_failing = False
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"cannot write into `{folder}`: {error.strerror}", hint="choose another folder"
            ) from None

    def add(self, record: RequestRecord, request: bytes, answer: bytes) -> None:
        """Write one request and its answer down, soon."""
        if self._room.acquire(blocking=False):
            self._writer.submit(self._write, record, request, answer)
        else:
            self._fail("more passes than can be written")

    def close(self) -> None:
        """Write what is left."""
        self._writer.shutdown(wait=True)

    def _write(self, record: RequestRecord, request: bytes, answer: bytes) -> None:
        try:
            at = datetime.fromtimestamp(record.at, UTC)
            name = f"{at.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}-{next(self._numbers):05}.json"
            value = {
                "toolfold_proxy": FORMAT,
                "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "dialect": record.dialect,
                "model": record.model,
                "counted": {
                    key: value
                    for key, value in asdict(record).items()
                    if key not in ("at", "dialect", "model")
                },
                "request": self._json(request),
                "answer": self._json(answer),
            }
            descriptor = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                json.dump(value, out, ensure_ascii=True, indent=1)
        except OSError as error:
            self._fail(error.strerror or "it cannot be written")
        except Exception:
            _log.exception("a request could not be written down")
        finally:
            self._room.release()

    def _json(self, body: bytes) -> Json:
        """Return a body as it may be written: as JSON where it is some, else as a text."""
        try:
            value = parse(body)
        except (ValueError, RecursionError):
            value = body.decode("utf-8", "replace")
        return self._redactor.redacted(value)

    def _fail(self, reason: str) -> None:
        if not self._is_failing:
            self._is_failing = True
            _log.error("not all traffic is kept in `%s`: %s", self._folder, reason)
