"""Trust decided at a running gateway: what waits, with the difference; approved or turned down.

Whoever decides says what they saw, by its fingerprint or by the digest of all that waits of a
server. Where something else waits by then, nothing is decided.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from toolfold.invisible import shown
from toolfold.serve.control.messages import ControlError
from toolfold.serve.control.moments import moment
from toolfold.serve.control.verb_arguments import number, text
from toolfold.serve.observe.changes import ChangeLog
from toolfold.serve.trust import verdicts
from toolfold.serve.trust.store import Book, TrustError, Waiting
from toolfold.tool import Json, canonical

if TYPE_CHECKING:
    from toolfold.serve.control.control_socket import Verb
    from toolfold.serve.gateway import Gateway
    from toolfold.serve.trust.verdicts import Trust

__all__ = ["TrustVerbs"]

TOOLS_AT_MOST = 200
"""How many tools one answer holds; who wants others names a server or a tool."""

_NAME_LIMIT = 120

_Decided = Literal["approved", "rejected"]
_AllWaiting = dict[str, dict[str, Waiting]]


class TrustVerbs:
    """The verbs that begin with `trust.`.

    Args:
        gateway: The gateway.
        trust: What was approved and what waits; None where trust is off.
        changes: Takes note of what is decided.
    """

    def __init__(self, gateway: Gateway, trust: Trust | None, changes: ChangeLog) -> None:
        self._gateway = gateway
        self._trust = trust
        self._changes = changes

    @property
    def table(self) -> dict[str, Verb]:
        """The verbs by name."""
        return {
            "trust.pending": self.pending,
            "trust.approve": self.approve,
            "trust.reject": self.reject,
        }

    async def pending(self, arguments: Mapping[str, Json]) -> Json:
        """Answer which tools wait for a person, and what is different in each."""
        server = text(arguments, "server", default="")
        tool = text(arguments, "tool", default="")
        limit = number(arguments, "limit", default=TOOLS_AT_MOST, high=TOOLS_AT_MOST)
        if self._trust is None:
            return {"mode": "off", "count": 0, "servers": []}
        book = await self._book()
        waiting = {name: tools for name, tools in _waiting(book).items() if server in ("", name)}
        return await asyncio.to_thread(
            _pending, self._trust.mode, book, waiting, tool=tool, limit=limit
        )

    async def approve(self, arguments: Mapping[str, Json]) -> Json:
        """Let a tool be used as it was seen, or all that wait of a server."""
        return await self._decide(arguments, "approved")

    async def reject(self, arguments: Mapping[str, Json]) -> Json:
        """Keep a tool away until it changes again, or all that wait of a server."""
        return await self._decide(arguments, "rejected")

    async def _decide(self, arguments: Mapping[str, Json], how: _Decided) -> Json:
        if self._trust is None:
            raise ControlError("off", "trust is off: set `serve.trust` to `changes` or `all`")
        server = text(arguments, "server")
        tool = text(arguments, "tool", default="")
        seen = text(arguments, "fingerprint" if tool else "digest")
        now = time.time()
        decided: list[str] = []

        def change(book: Book) -> Book:
            decided.clear()
            for name, waiting in _seen(book, server, tool, seen).items():
                decided.append(name)
                if how == "approved":
                    book = verdicts.approve(book, server, name, waiting.fingerprint, now)
                else:
                    book = verdicts.reject(book, server, name, waiting.fingerprint)
            return book

        verb = f"trust.{'approve' if how == 'approved' else 'reject'}"
        try:
            await asyncio.to_thread(self._trust.store.update, change)
        except TrustError as error:
            raise ControlError("unusable", error.message) from None
        except ControlError as error:
            self._changes.note(verb, tool or server, error.message, refused=True)
            raise
        await self._gateway.pool.judge_again([server])
        for name in decided:
            self._changes.note(verb, name, f"as {seen[:12]}" if tool else "")
        return {"server": server, how: decided}

    async def _book(self) -> Book:
        assert self._trust is not None
        try:
            return await asyncio.to_thread(self._trust.store.load)
        except TrustError as error:
            raise ControlError("unusable", error.message) from None


def _waiting(book: Book) -> _AllWaiting:
    """Return what waits by server and tool; what was turned down waits no more."""
    found: _AllWaiting = {}
    for server, entries in sorted(book.items()):
        own = {
            tool: entry.waiting
            for tool, entry in sorted(entries.items())
            if entry.waiting is not None and not entry.waiting.is_rejected
        }
        if own:
            found[server] = own
    return found


def _digest(waiting: Mapping[str, Waiting]) -> str:
    pairs = [[tool, waiting[tool].fingerprint] for tool in sorted(waiting)]
    return hashlib.sha256(canonical(pairs)).hexdigest()


def _seen(book: Book, server: str, tool: str, seen: str) -> dict[str, Waiting]:
    """Return what waits, where it is what was seen.

    Raises:
        ControlError: It is not, or nothing waits.
    """
    waiting = _waiting(book).get(server, {})
    if tool:
        own = waiting.get(tool)
        if own is None:
            raise ControlError("not_waiting", f"{shown(tool, _NAME_LIMIT)} does not wait")
        if own.fingerprint != seen:
            raise ControlError(
                "changed", f"{shown(tool, _NAME_LIMIT)} has changed since: look at it again"
            )
        return {tool: own}
    if not waiting:
        raise ControlError("not_waiting", f"nothing of {shown(server, _NAME_LIMIT)} waits")
    if _digest(waiting) != seen:
        raise ControlError(
            "changed",
            f"what waits of {shown(server, _NAME_LIMIT)} has changed since: look at it again",
        )
    return waiting


def _pending(mode: str, book: Book, waiting: _AllWaiting, *, tool: str, limit: int) -> Json:
    left = limit
    servers: list[Json] = []
    for server, own in waiting.items():
        named = {name: each for name, each in own.items() if tool in ("", name)}
        kept = dict(list(named.items())[:left])
        left -= len(kept)
        if not kept:
            continue
        servers.append(
            {
                "server": server,
                "count": len(own),
                # Of what was not all shown, not all can be decided.
                "digest": _digest(own) if len(kept) == len(own) else None,
                "tools": [_tool(book, server, name, each) for name, each in kept.items()],
            }
        )
    count = sum(map(len, waiting.values()))
    return {"mode": mode, "count": count, "servers": servers}


def _tool(book: Book, server: str, name: str, waiting: Waiting) -> Json:
    entry = book[server][name]
    return {
        "tool": name,
        "reason": waiting.reason,
        "fingerprint": waiting.fingerprint,
        "since": moment(waiting.at),
        "marks": list(waiting.marks),
        "difference": verdicts.entry_difference(entry),
    }
