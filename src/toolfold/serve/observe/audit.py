"""The audit log: one line of JSON for each call, with its secrets taken out.

Resources that were read, prompts that were got and calls that came to no tool are in it too, and
requests that the proxy passed to a model, without anything of what was said, and what people
changed in the running gateway.

A line is written whole or not at all, by one write to the end of the file, so several
gateways may share it. Of the arguments a thousand characters are looked at: a text that
has no room in them is counted, not quoted, and what is quoted is redacted before it is
cut. A session's id, which is a key, is written as its digest. A log that cannot be written
is reported once and breaks no call.

Where replicas share a PostgreSQL the lines are there (`shared_audit`), and in the file what came
while it was away.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from toolfold import prompts
from toolfold._bounds import cut
from toolfold._json_values import compact
from toolfold._locks import file_lock
from toolfold.arguments import read_arguments
from toolfold.dispatch.records import (
    CallRecord,
    RequestRecord,
    SearchRecord,
    Silent,
    session_digest,
)
from toolfold.redact import Redactor
from toolfold.store.store import DEFAULT_TENANT
from toolfold.tool import Json, is_array, is_mapping

if TYPE_CHECKING:
    from toolfold.serve.observe.shared_audit import SharedAudit

__all__ = ["AuditLog", "ChangeRecord", "audit_line", "change_line", "request_line"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

ARGUMENTS_LIMIT = 500
_NAME_LIMIT = 200
_ERROR_LIMIT = 500
_LOOKED_AT = 1_000
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """One change of a running gateway that a person made, or tried to."""

    at: float
    """When, in seconds since 1970."""

    principal: str
    """Who: `local` is the user whose gateway it is."""

    verb: str
    """What was done, as `servers.restart`."""

    target: str
    """To what."""

    outcome: Literal["ok", "refused"]
    detail: str = ""
    """What came of it, in one line."""


def audit_line(record: CallRecord, redactor: Redactor) -> str:
    """Return the line of a call, without its line break. It is JSON in ASCII."""
    fields: dict[str, Json] = {
        "at": _time(record.at),
        **_tenant(record.tenant),
        "principal": _name(record.principal),
        "session": session_digest(record.session),
        "server": _name(record.server),
        "tool": _name(record.tool),
        "via": record.via,
        "outcome": record.outcome,
        "seconds": round(record.seconds, 6),
        "request_size": record.request_size,
        "result_size": record.result_size,
        "arguments": None if record.arguments is None else _arguments(record.arguments, redactor),
        "error": None if record.error is None else _text(record.error, _ERROR_LIMIT, redactor),
    }
    return json.dumps(fields, separators=(",", ":"))


def request_line(record: RequestRecord, redactor: Redactor) -> str:
    """Return the line of a request to a model, without its line break. It is JSON in ASCII."""
    fields: dict[str, Json] = {
        "at": _time(record.at),
        **_tenant(record.tenant),
        "principal": _name(record.principal),
        "upstream": _name(record.upstream),
        "dialect": record.dialect,
        "model": _name(record.model),
        "outcome": record.outcome,
        "status": record.status,
        "seconds": round(record.seconds, 6),
        "added": round(record.added, 6),
        "rounds": record.rounds,
        "searches": record.searches,
        "calls": record.calls,
        "tools": record.tools,
        "tokens_before": record.tokens_before,
        "tokens_after": record.tokens_after,
        "prompt_tokens": record.prompt_tokens,
        "cached_tokens": record.cached_tokens,
        "completion_tokens": record.completion_tokens,
        "error": None if record.error is None else _text(record.error, _ERROR_LIMIT, redactor),
    }
    return json.dumps(fields, separators=(",", ":"))


def change_line(record: ChangeRecord, redactor: Redactor) -> str:
    """Return the line of a change, without its line break. It is JSON in ASCII."""
    fields: dict[str, Json] = {
        "at": _time(record.at),
        "principal": _name(record.principal),
        "verb": record.verb,
        "target": _name(record.target),
        "outcome": record.outcome,
        "detail": _text(record.detail, _ERROR_LIMIT, redactor),
    }
    return json.dumps(fields, separators=(",", ":"))


def _tenant(tenant: str) -> dict[str, Json]:
    """Return whose a line is, where that is anybody's in particular."""
    return {} if tenant == DEFAULT_TENANT else {"tenant": _name(tenant)}


def _time(at: float) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _name(name: str) -> str:
    return cut(name, _NAME_LIMIT)


def _text(text: str, limit: int, redactor: Redactor) -> str:
    return cut(redactor.redact(_Room(_LOOKED_AT).text(text)), limit)


def _arguments(arguments: Json, redactor: Redactor) -> str:
    kept = _Room(_LOOKED_AT).part(arguments, _DEPTH)
    return cut(compact(redactor.redacted(kept)), ARGUMENTS_LIMIT)


class _Room:
    """Takes as much of a JSON value as there is room for."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    def text(self, text: str) -> str:
        # Not its start: that may be the start of a secret, too short to be known for one.
        if len(text) > self._left:
            return f"({len(text):,} characters)"
        self._left -= len(text)
        return text

    def part(self, value: Json, depth: int) -> Json:
        self._left -= 2
        if isinstance(value, str):
            return self.text(value)
        if is_array(value):
            items = [self.part(inner, depth - 1) for inner in self._while_room(value, depth)]
            return items if items or not value else "(…)"
        if is_mapping(value):
            pairs = self._while_room(value.items(), depth)
            fields = {self.text(str(key)): self.part(inner, depth - 1) for key, inner in pairs}
            return fields if fields or not value else "(…)"
        return value

    def _while_room(self, items: Iterable[T], depth: int) -> Iterator[T]:
        for item in items:
            if self._left <= 0 or depth <= 0:
                return
            yield item


class AuditLog(Silent):
    """Appends the calls to a file, and starts a new file when it is full.

    Args:
        path: The file. Its folder is made.
        redactor: Takes secrets out.
        max_bytes: The size at which a new file is started.
        keep: How many full files are kept, as `path.1` (the newest) to `path.N`.
        shared: Where the lines go instead, as long as that can be reached.
    """

    def __init__(
        self,
        path: Path,
        redactor: Redactor | None = None,
        *,
        max_bytes: int = 10 * 1024 * 1024,
        keep: int = 5,
        shared: SharedAudit | None = None,
    ) -> None:
        self.path = path
        self._redactor = redactor or Redactor()
        self._max_bytes = max_bytes
        self._keep = keep
        self._descriptor: int | None = None
        self._is_failing = False
        self._is_torn = False
        self._lock = threading.Lock()
        self._shared = shared

    def called(self, record: CallRecord) -> None:
        """Write a call down."""
        self._add(audit_line(record, self._redactor), record.at, record.tenant)

    def requested(self, record: RequestRecord) -> None:
        """Write a request to a model down: what was counted, and nothing of what was said."""
        if record.dialect:
            self._add(request_line(record, self._redactor), record.at, record.tenant)

    def changed(self, record: ChangeRecord) -> None:
        """Write a change of the gateway down."""
        self._add(change_line(record, self._redactor), record.at)

    def _add(self, line: str, at: float, tenant: str = DEFAULT_TENANT) -> None:
        if self._shared is None:
            self._add_here(line)
        else:
            self._shared.add(line, at, tenant, self._add_here)

    def _add_here(self, line: str) -> None:
        """Write a line to the file, from whatever thread."""
        with self._lock:
            try:
                self._append(line.encode() + b"\n")
                self._is_failing = False
            except OSError as error:
                self._close()
                if not self._is_failing:
                    self._is_failing = True
                    reason = error.strerror or "it is held by another process"
                    _log.error("the audit log `%s` cannot be written: %s", self.path, reason)

    def fetched(self, record: CallRecord) -> None:
        """Write down that a resource was read or a prompt was got."""
        self.called(record)

    def answered(self, record: SearchRecord) -> None:
        """Write down a call that was not run: an unknown name, one out of the scope, a mistake."""
        if record.error is None or record.role in (prompts.TOOL_SEARCH, prompts.TOOL_DESCRIBE):
            return
        given = read_arguments(record.arguments)
        arguments = {} if isinstance(given, str) else given
        through, meant = record.role == prompts.TOOL_CALL, record.meant
        written = str(arguments.get("name", "")) if through else record.name
        self.called(
            CallRecord(
                at=record.at,
                principal=record.principal,
                session=record.session,
                server=(meant and meant.source) or "",
                tool=written if meant is None else meant.name,
                via="tool_call" if through else "direct",
                outcome="refused",
                seconds=record.seconds,
                arguments=arguments,
                error=record.error,
                tenant=record.tenant,
            )
        )

    def close(self) -> None:
        """Write down what still waits, and close the file."""
        if self._shared is not None:
            self._shared.close()
        with self._lock:
            self._close()

    def _append(self, line: bytes) -> None:
        descriptor = self._open()
        size = os.fstat(descriptor).st_size
        if size and size + len(line) > self._max_bytes:
            self._rotate()
            descriptor = self._open()
        # After a part of a line, which is all a full disk takes, the next starts afresh.
        line = b"\n" + line if self._is_torn else line
        written = os.write(descriptor, line)
        self._is_torn = written < len(line)
        if self._is_torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open(self) -> int:
        """Return the file's descriptor, of the file that stands at the path by now."""
        if self._descriptor is not None:
            with suppress(OSError):
                if os.path.samestat(os.stat(self.path), os.fstat(self._descriptor)):
                    return self._descriptor
            self._close()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._descriptor = os.open(self.path, flags, 0o600)
        return self._descriptor

    def _rotate(self) -> None:
        with file_lock(self._numbered("lock"), 1.0):
            # Another process may have done it while this one waited.
            if not self.path.exists() or self.path.stat().st_size < self._max_bytes // 2:
                return
            self._close()
            for number in range(self._keep - 1, 0, -1):
                with suppress(FileNotFoundError):
                    self._numbered(number).replace(self._numbered(number + 1))
            with suppress(FileNotFoundError):
                if self._keep:
                    self.path.replace(self._numbered(1))
                else:
                    self.path.unlink()

    def _numbered(self, number: int | str) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _close(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
