"""Whether a tool is still the one that was approved.

A tool's fingerprint names everything a model reads of it. With `changes`, what is first
seen is remembered, and a tool that says something else later waits until a person has
looked; with `all`, new tools wait as well. What waits exists for nobody. An approval is
of one fingerprint: what changes again waits again.

Where the approvals cannot be read, everything waits. Where they cannot be written, or are gone
though they were there, or are shared and out of reach, what is known to be approved stays and all
else waits. Deciding is pure (`decide`, `approve`, `reject`, `forget`); keeping is `TrustStore`'s.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from toolfold._bounds import cut
from toolfold._json_values import compact, fast_bytes
from toolfold.errors import ToolfoldError
from toolfold.invisible import marks, shown, shown_tool
from toolfold.serve.trust.store import (
    Approved,
    Book,
    Reason,
    TrustEntry,
    TrustError,
    TrustStore,
    Waiting,
)
from toolfold.serve.trust.tool_changes import difference, summary
from toolfold.store.store import Signature, StoreAwayError
from toolfold.tool import Json, Tool, canonical

__all__ = [
    "Mode",
    "Quarantined",
    "Sifted",
    "Trust",
    "approve",
    "content",
    "decide",
    "entry_difference",
    "fingerprint",
    "forget",
    "mark_shown",
    "reject",
    "shown",
    "shown_tool",
]

_log = logging.getLogger(__name__)

Mode = Literal["off", "changes", "all"]
"""Which tools wait: none, those that changed, or new ones too."""

TOOLS_AT_MOST = 10_000
"""Tools of one server that are remembered. Any beyond waits, whatever the mode."""

_NO_REQUESTS: Mapping[str, Json] = {}
_TEXT_KEPT = 20_000
_SCHEMA_KEPT = 50_000


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A tool that waits for a person."""

    tool: Tool
    reason: Literal["new", "changed", "rejected", "unreadable", "too many"]
    fingerprint: str
    marks: tuple[str, ...] = ()
    """What in it should be looked at twice."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """The tools of one server, parted."""

    admitted: tuple[Tool, ...]
    quarantined: tuple[Quarantined, ...] = ()


def content(tool: Tool, request: Json = None) -> dict[str, Json]:
    """Return what a model reads of a tool, as it came.

    Args:
        tool: The tool.
        request: What a call of it sends and where, where the source tells; it counts, too.
    """
    parts: dict[str, Json] = {
        "title": tool.title,
        "description": tool.description,
        "parameters": tool.parameters,
        "annotations": tool.annotations,
        "output": (tool.raw or {}).get("outputSchema"),
    }
    return parts if request is None else {**parts, "request": request}


def fingerprint(tool: Tool, request: Json = None) -> str:
    """Return what names everything a model reads of a tool, and the request that it sends."""
    return hashlib.sha256(canonical([tool.name, content(tool, request)])).hexdigest()


def decide(
    book: Book,
    mode: Mode,
    server: str,
    tools: Sequence[Tool],
    now: float,
    requests: Mapping[str, Json] = _NO_REQUESTS,
) -> tuple[Sifted, Book]:
    """Part the tools of a server, and return what is remembered afterwards."""
    if mode == "off":
        return Sifted(tuple(tools)), book
    entries = dict(book.get(server, {}))
    admitted: list[Tool] = []
    waiting: list[Quarantined] = []
    for tool in tools:
        request = requests.get(tool.name)
        name = fingerprint(tool, request)
        old = entries.get(tool.name)
        if old is None and len(entries) >= TOOLS_AT_MOST:
            waiting.append(Quarantined(tool, "too many", name))
            continue
        entry = _seen(old or TrustEntry(), mode, tool, name, now, request)
        entries[tool.name] = entry
        if entry.waiting is None:
            admitted.append(tool)
        else:
            reason = "rejected" if entry.waiting.is_rejected else entry.waiting.reason
            waiting.append(Quarantined(tool, reason, name, entry.waiting.marks))
    return Sifted(tuple(admitted), tuple(waiting)), {**book, server: entries}


def _seen(
    entry: TrustEntry, mode: Mode, tool: Tool, name: str, now: float, request: Json
) -> TrustEntry:
    """Return what is known of a tool after it was listed."""
    if entry.approved is not None and entry.approved.fingerprint == name:
        return TrustEntry(entry.approved)
    if entry.waiting is not None and entry.waiting.fingerprint == name:
        return entry
    if entry.approved is None and entry.waiting is None and mode == "changes":
        return TrustEntry(Approved(name, now, "first use", _kept(tool, request)))
    reason: Reason = "new" if entry.approved is None else "changed"
    return TrustEntry(entry.approved, Waiting(name, now, reason, _kept(tool, request), marks(tool)))


def _kept(tool: Tool, request: Json) -> str:
    """Return the content in JSON, bounded: it is for showing; the fingerprint is of all."""
    kept: dict[str, Json] = {}
    for part, value in content(tool, request).items():
        if isinstance(value, str):
            # A lone half of a character fits in no file.
            kept[part] = cut(value, _TEXT_KEPT).encode("utf-8", "backslashreplace").decode()
        elif value and not _fits(value):
            kept[part] = f"({len(compact(value)):,} characters of JSON, too much to keep)"
        else:
            kept[part] = value
    return compact(kept)


def _fits(value: Json) -> bool:
    text = fast_bytes(value)
    return text is not None and len(text) <= _SCHEMA_KEPT


def approve(book: Book, server: str, tool: str, name: str, now: float) -> Book:
    """Approve what waits under a fingerprint; nothing where something else waits by now."""
    waiting = _waiting(book, server, tool, name)
    if waiting is None:
        return book
    approved = Approved(waiting.fingerprint, now, "person", waiting.content)
    return _with(book, server, tool, TrustEntry(approved))


def reject(book: Book, server: str, tool: str, name: str) -> Book:
    """Turn down what waits under a fingerprint: it stays away until it changes again."""
    return _replace_waiting(book, server, tool, name, is_rejected=True)


def mark_shown(book: Book, server: str, tool: str, name: str) -> Book:
    """Remember that a person has seen what waits under a fingerprint."""
    return _replace_waiting(book, server, tool, name, is_shown=True)


def forget(book: Book, server: str, tool: str) -> Book:
    """Drop what is known of a tool: the next time it is seen is the first."""
    left = {name: entry for name, entry in book.get(server, {}).items() if name != tool}
    others = {name: entries for name, entries in book.items() if name != server}
    return {**others, server: left} if left else others


def entry_difference(entry: TrustEntry) -> str:
    """Return what changed in a tool, for a person; all of it where nothing else waits."""
    old = json.loads(entry.approved.content) if entry.approved else None
    if entry.waiting is None:
        return "" if old is None else summary(old)
    return difference(old, json.loads(entry.waiting.content))


def _waiting(book: Book, server: str, tool: str, name: str) -> Waiting | None:
    entry = book.get(server, {}).get(tool)
    waiting = entry.waiting if entry else None
    return waiting if waiting is not None and waiting.fingerprint == name else None


def _replace_waiting(book: Book, server: str, tool: str, name: str, **changes: bool) -> Book:
    waiting = _waiting(book, server, tool, name)
    if waiting is None:
        return book
    entry = replace(book[server][tool], waiting=replace(waiting, **changes))
    return _with(book, server, tool, entry)


def _with(book: Book, server: str, tool: str, entry: TrustEntry) -> Book:
    return {**book, server: {**book.get(server, {}), tool: entry}}


class Trust:
    """Decides over the tools of servers, with the approvals of a store.

    Sifting reads and writes the store's file and takes the fingerprint of every tool; call
    it from a worker thread where thousands of tools are listed. It may be called from
    several at once.

    Args:
        store: The approvals.
        mode: Which tools wait.
        clock: Seconds since 1970.
    """

    def __init__(
        self, store: TrustStore, mode: Mode, clock: Callable[[], float] = time.time
    ) -> None:
        self.store = store
        self.mode: Mode = mode
        self._clock = clock
        self._lock = threading.Lock()
        self._book: Book = {}
        self._signature: Signature = None
        self._known: dict[str, Mapping[str, TrustEntry] | None] = {}
        self._unjudged: set[str] = set()
        self._told: str | None = None
        self._was_there = False

    def sift(
        self, server: str, tools: Sequence[Tool], requests: Mapping[str, Json] = _NO_REQUESTS
    ) -> Sifted:
        """Part the tools that a server lists in those that exist and those that wait.

        Args:
            server: Its name.
            tools: Its tools.
            requests: What calls send, by tool, where that counts, too.
        """
        if self.mode == "off":
            return Sifted(tuple(tools))
        with self._lock:
            try:
                sifted = self._sift(server, tools, requests)
                self._unjudged.discard(server)
                return sifted
            except StoreAwayError as error:
                self._unjudged.add(server)
                self._known[server] = self._book.get(server)
                return self._approved_only(server, tools, requests, self._book, error)
            except TrustError as error:
                return self._all_waiting(server, tools, requests, error)

    def is_stale(self, server: str) -> bool:
        """Whether a person has approved, rejected or forgotten a tool since the last sifting.

        It costs a look at the date of the approvals, and reading them where that has changed.
        """
        if self.mode == "off" or server not in self._known:
            return False
        with self._lock:
            try:
                if self._has_vanished:
                    return self._known[server] is not None
                known = self._known[server]
                return self._current().get(server) != known or server in self._unjudged
            except StoreAwayError:
                return False  # what is known stays until it can be asked again
            except TrustError:
                return self._known[server] is not None

    def difference(self, server: str, tool: str) -> str | None:
        """Return what changed in a tool that waits, for a person; None where it does not.

        Raises:
            TrustError: The approvals cannot be read.
        """
        entry = self.store.load().get(server, {}).get(tool)
        if entry is None or entry.waiting is None:
            return None
        return entry_difference(entry)

    @property
    def _has_vanished(self) -> bool:
        """Whether the file was there and is not: nobody approved anything by taking it away."""
        return self._was_there and self.store.signature() is None

    def _current(self) -> Book:
        """Return what the file holds, read where it has changed."""
        signature = self.store.signature()
        if self._was_there and signature is None:
            return self._book
        self._was_there = self._was_there or signature is not None
        if signature is None or signature != self._signature:
            self._signature = None
            self._book = self.store.load()
            self._signature = signature
        return self._book

    def _sift(self, server: str, tools: Sequence[Tool], requests: Mapping[str, Json]) -> Sifted:
        now = self._clock()
        book = self._current()
        if self._has_vanished:
            self._known[server] = None
            return self._approved_only(server, tools, requests, book, self.store.vanished())
        sifted, after = decide(book, self.mode, server, tools, now, requests)
        if after != book:
            # Somebody may have written in between: it is decided again under the lock.
            def change(current: Book) -> Book:
                nonlocal sifted, after
                if self._has_vanished:
                    raise self.store.vanished()
                sifted, after = decide(current, self.mode, server, tools, now, requests)
                return after

            try:
                self._signature = self.store.update(change)
            except TrustError as error:
                self._known[server] = None if self._has_vanished else book.get(server)
                return self._approved_only(server, tools, requests, book, error)
            self._book = after
            self._was_there = self._was_there or self._signature is not None
        self._known[server] = after.get(server)
        self._told = None
        return sifted

    def _approved_only(
        self,
        server: str,
        tools: Sequence[Tool],
        requests: Mapping[str, Json],
        book: Book,
        error: ToolfoldError,
    ) -> Sifted:
        """Part the tools where nothing can be written down: what was approved stays."""
        self._tell(error, "new and changed tools wait")
        entries = book.get(server, {})
        admitted: list[Tool] = []
        waiting: list[Quarantined] = []
        for tool in tools:
            name = fingerprint(tool, requests.get(tool.name))
            entry = entries.get(tool.name)
            approved = entry.approved if entry is not None else None
            if approved is not None and approved.fingerprint == name:
                admitted.append(tool)
            else:
                waiting.append(Quarantined(tool, "unreadable", name, marks(tool)))
        return Sifted(tuple(admitted), tuple(waiting))

    def _tell(self, error: ToolfoldError, what: str) -> None:
        if self._told != str(error):
            self._told = str(error)
            _log.error("%s; until then %s (%s)", error, what, error.hint)

    def _all_waiting(
        self,
        server: str,
        tools: Sequence[Tool],
        requests: Mapping[str, Json],
        error: TrustError,
    ) -> Sifted:
        self._known[server] = None
        self._tell(error, "every tool waits")
        names = ((tool, fingerprint(tool, requests.get(tool.name))) for tool in tools)
        return Sifted((), tuple(Quarantined(tool, "unreadable", name) for tool, name in names))
