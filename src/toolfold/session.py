"""What one conversation has done so far.

A `Session` is a value: it goes into `fold`, and `resolve` returns the next one. The host
keeps it. `SessionStore` is for hosts that keep many: it holds the newest and forgets the
oldest, and a forgotten conversation merely searches again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

__all__ = ["SentArray", "Session", "SessionStore"]

REVEALED_LIMIT = 512
"""How many revealed tools a session remembers. The oldest go first."""

DEFINED_LIMIT = 10_000
"""How many definitions that came in a session keeps: as many as a provider takes. A replayed
call needs that of its tool, however long ago it was found."""

_REFUSED_LIMIT = 16


@dataclass(frozen=True, slots=True)
class SentArray:
    """The array of tools that the last request of a conversation held.

    It is kept for hosts that say which provider's API they speak: what such a provider was sent
    stays as it was for the rest of the conversation, to the byte.
    """

    api: str
    """The API it was written for."""

    strategy: str
    """The strategy that made it; empty where nothing was folded."""

    digest: str
    """Names its bytes."""

    records: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """What each entry is called, and its JSON text, in order. Empty where the strategy changes
    its list, or nothing was folded: then there is nothing to go on with."""

    deferred: frozenset[str] = frozenset()
    """The names of the tools that it defers."""

    guidance: str = ""
    """What the system prompt said with it."""


@dataclass(frozen=True, slots=True)
class Session:
    """What a conversation has revealed, and how often it has searched in vain."""

    revealed: tuple[str, ...] = ()
    """The names of the tools that a search has revealed, in the order of their first time."""

    fruitless: int = 0
    """How many searches in a row have found nothing."""

    sent: SentArray | None = None
    """The array of tools that was sent last, where the host says to whom."""

    defined: tuple[tuple[str, str], ...] = ()
    """The definitions that came in with what was found, each as it came first: the name on the
    wire, and the JSON text."""

    bridged: bool = False
    """Whether a tool was described or called through the bridge."""

    breaks: int = 0
    """How often the array of tools has changed."""

    refused: tuple[str, ...] = ()
    """The providers that refused deferred tools, as `toolfold.providers.Provider.key` has them."""

    def reveal(self, names: Iterable[str]) -> Session:
        """Return the session after these tools were found."""
        revealed = tuple(dict.fromkeys((*self.revealed, *names)))[-REVEALED_LIMIT:]
        return replace(self, revealed=revealed, fruitless=0)

    def define(self, definitions: Iterable[tuple[str, str]]) -> Session:
        """Return the session after these definitions came in; what is defined stays as it is."""
        defined = {**dict(definitions), **dict(self.defined)}
        order = dict.fromkeys((*dict(self.defined), *defined))
        kept = tuple((name, defined[name]) for name in order)[-DEFINED_LIMIT:]
        return self if kept == self.defined else replace(self, defined=kept)

    def refuse(self, provider: str) -> Session:
        """Return the session after a provider refused deferred tools."""
        refused = tuple(dict.fromkeys((*self.refused, provider)))[-_REFUSED_LIMIT:]
        return replace(self, refused=refused)

    def searched_in_vain(self) -> Session:
        """Return the session after a search that found nothing."""
        return replace(self, fruitless=self.fruitless + 1)

    def moved_on(self) -> Session:
        """Return the session after something other than a search in vain."""
        return self if self.fruitless == 0 else replace(self, fruitless=0)

    def joined(self, began: Session, ended: Session) -> Session:
        """Return this session with what a step added that ran beside others.

        Args:
            began: The session that the step began with.
            ended: The session that it came back with.
        """
        if self == began:
            return ended
        added = (name for name in ended.revealed if name not in began.revealed)
        fruitless = max(self.fruitless + ended.fruitless - began.fruitless, 0)
        joined = self.reveal(added).define(ended.defined)
        return replace(
            joined,
            fruitless=fruitless,
            sent=self.sent or ended.sent,
            bridged=self.bridged or ended.bridged,
            breaks=max(self.breaks, ended.breaks),
            refused=tuple(dict.fromkeys((*self.refused, *ended.refused))),
        )


class SessionStore:
    """The newest sessions, by the host's own keys. Safe to share between threads.

    Args:
        limit: How many sessions stay. The one not used for the longest time leaves first.
    """

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, key: object) -> bool:
        return key in self._sessions

    def get(self, key: str) -> Session:
        """Return the session of a conversation, a new one where none is kept."""
        with self._lock:
            session = self._sessions.pop(key, None)
            if session is None:
                return Session()
            self._sessions[key] = session
            return session

    def put(self, key: str, session: Session) -> None:
        """Keep the session of a conversation."""
        with self._lock:
            self._sessions.pop(key, None)
            self._sessions[key] = session
            while len(self._sessions) > self._limit:
                del self._sessions[next(iter(self._sessions))]

    def forget(self, key: str) -> None:
        """Let go of the session of a conversation, where one is kept."""
        with self._lock:
            self._sessions.pop(key, None)
