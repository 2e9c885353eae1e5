"""What conversations have done so far, known to all replicas.

A conversation that moves from one replica to another finds what it had. Before each step the
database is asked whether another replica has gone on with it, and what a step adds is joined
with what stands there by then, in one transaction. While the database is away a conversation
goes on with what this process knows of it, and what it added is joined as soon as that can be.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging

from toolfold._memo import Memo
from toolfold.serve.own_sessions import OwnSessions
from toolfold.session import Session
from toolfold.store.postgres.database import Database
from toolfold.store.postgres.entries import SESSIONS, PostgresEntries
from toolfold.store.session_bytes import dump_session, load_session
from toolfold.store.store import DEFAULT_TENANT, StoreAwayError

__all__ = ["SharedSessions"]

_log = logging.getLogger(__name__)


class SharedSessions:
    """Sessions that every replica can go on with.

    Args:
        entries: Where they are kept.
        limit: How many are known here as well, so that they need not be read again.
    """

    def __init__(self, entries: PostgresEntries, limit: int = 4096) -> None:
        self._entries = entries
        self._own = OwnSessions(limit)
        self._versions: Memo[str, int] = Memo(limit)
        self._since: Memo[str, Session] = Memo(limit)
        """What the others know of conversations that went on here while the database was away."""
        self._is_away = False

    @classmethod
    def of(cls, database: Database) -> SharedSessions:
        """Return the sessions of a database."""
        return cls(PostgresEntries(database, SESSIONS))

    def __len__(self) -> int:
        return len(self._own)

    def __contains__(self, key: object, /) -> bool:
        return key in self._own

    async def begun(self, key: str, tenant: str = DEFAULT_TENANT) -> Session:
        """Return the session that a step of a conversation begins with."""
        if self._since.get(key) is not None:
            own = self._own.get(key)
            return (await self.joined(key, own, own, tenant))[1]
        known = (self._versions.get(key) or 0) if key in self._own else 0
        entries = self._entries.of(tenant)
        try:
            found = await asyncio.to_thread(entries.newer, _digest(key), known)
        except StoreAwayError as error:
            self._say(error)
            return self._own.get(key)
        self._say(None)
        if found is not None and found.value is not None:
            self._know(key, found.version, load_session(found.value) or Session())
        return self._own.get(key)

    async def joined(
        self, key: str, began: Session, ended: Session, tenant: str = DEFAULT_TENANT
    ) -> tuple[Session, Session]:
        """Keep what a step added, and return the session before and after that."""
        here, since = self._own.get(key), self._since.get(key)
        if began == ended and since is None:
            return began, began
        before = after = here

        def change(old: bytes | None) -> bytes:
            nonlocal before, after
            if old is None:  # nobody else has it: it is new, or was too old to be kept
                before, after = here, here.joined(began, ended)
            else:
                before = load_session(old) or Session()
                known, now = (began, ended) if since is None else (since, here.joined(began, ended))
                after = before.joined(known, now)
            return dump_session(after)

        entries = self._entries.of(tenant)
        try:
            written = await asyncio.to_thread(entries.update, _digest(key), change)
        except StoreAwayError as error:
            self._say(error)
            self._since.put(key, since or here)
            return await self._own.joined(key, began, ended)
        self._say(None)
        self._since.drop(key)
        assert written is not None
        self._know(key, written.version, after)
        return before, after

    def forget(self, key: str) -> None:
        """Let go of what this process keeps of a conversation; another may go on with it."""
        self._own.forget(key)
        self._since.drop(key)

    async def end(self, key: str, tenant: str = DEFAULT_TENANT) -> None:
        """Let go of a conversation for good, everywhere."""
        self.forget(key)
        await asyncio.to_thread(self._entries.of(tenant).forget, _digest(key))

    def _know(self, key: str, version: int, session: Session) -> None:
        # Of two steps that end together, the later one is kept.
        if key not in self._own or version > (self._versions.get(key) or 0):
            self._versions.put(key, version)
            self._own.put(key, session)

    def _say(self, error: StoreAwayError | None) -> None:
        if error is not None and not self._is_away:
            _log.warning("%s; conversations go on with what this replica knows of them", error)
        self._is_away = error is not None


def _digest(key: str) -> str:
    """Return what an entry is called: a conversation's key lets whoever has it go on with it."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
