"""Logs on standard error, one line for each event, with secrets taken out.

Standard output carries the protocol, so nothing here writes to it. What is logged is
redacted after it is put together, tracebacks included, and cannot break out of its line.
The libraries underneath log what the gateway reports itself; they are kept quiet.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal, Protocol

from toolfold.invisible import shown
from toolfold.redact import Redactor

__all__ = ["LogFormat", "Stream", "start_logs"]

LogFormat = Literal["text", "json"]

_LINE_LIMIT = 8_000
_TRACE_LIMIT = 20_000

# The supervisor of each server says what became of it; these add tracebacks to that.
_NOISY = {
    "mcp": logging.CRITICAL,
    "client": logging.CRITICAL,
    "mcp.server.streamable_http_manager": logging.CRITICAL,
    "psycopg.pool": logging.CRITICAL,  # a line for each attempt; ours says it once
    "sse_starlette": logging.WARNING,
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpcore2": logging.WARNING,
    "uvicorn": logging.WARNING,
    "uvicorn.access": logging.CRITICAL,
    "asyncio": logging.ERROR,
}


class Stream(Protocol):
    """Where lines go: standard error, or a screen that shares it."""

    def write(self, text: str, /) -> object:
        """Write a text."""
        ...

    def flush(self) -> None:
        """Send it."""
        ...


def start_logs(
    form: LogFormat = "text",
    *,
    redactor: Redactor | None = None,
    verbose: bool = False,
    stream: Stream | None = None,
) -> logging.Handler:
    """Log to standard error from here on, in place of whatever was set up before.

    Args:
        form: `text` for people, `json` for machines.
        redactor: Takes secrets out; one without known values by default.
        verbose: Whether the libraries underneath are heard too.
        stream: Where lines go in place of standard error.
    """
    redactor = redactor or Redactor()
    handler: logging.StreamHandler[Stream] = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Json(redactor) if form == "json" else _Text(redactor))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.INFO if verbose else logging.WARNING)
    logging.getLogger("toolfold").setLevel(logging.DEBUG if verbose else logging.INFO)
    for name, level in _NOISY.items():
        library = logging.getLogger(name)
        library.handlers.clear()  # uvicorn sets up its own, one of them to standard output
        library.propagate = True
        library.setLevel(logging.NOTSET if verbose else level)
    return handler


class _Line(logging.Formatter):
    """What both forms share: the parts of a record, redacted and bounded."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def message(self, record: logging.LogRecord) -> str:
        try:
            text = record.getMessage()
        except (TypeError, ValueError, KeyError):
            text = str(record.msg)  # the arguments do not fit; the event is told all the same
        return self._safe(text, _LINE_LIMIT).replace("\n", "\\n")

    def trace(self, record: logging.LogRecord) -> str:
        if not record.exc_info:
            return ""
        return self._safe(self.formatException(record.exc_info), _TRACE_LIMIT)

    def _safe(self, text: str, limit: int) -> str:
        return shown(self._redactor.redact(text), limit)


class _Text(_Line):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        line = f"{at} {record.levelname.lower():<7} {self.message(record)}"
        trace = self.trace(record)
        return line + "".join(f"\n    {part}" for part in trace.splitlines())


class _Json(_Line):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.message(record),
        }
        trace = self.trace(record)
        return json.dumps({**fields, "trace": trace} if trace else fields)
