"""What conversations have done so far, as far as this process knows.

What several replicas know of them is in `replica`, which is imported where something is shared.
"""

from __future__ import annotations

from typing import Protocol

from toolfold.session import Session, SessionStore
from toolfold.store.store import DEFAULT_TENANT

__all__ = ["OwnSessions", "Sessions"]


class Sessions(Protocol):
    """The sessions of a gateway's conversations, by their keys. They belong to one event loop."""

    def __len__(self) -> int: ...

    def __contains__(self, key: object, /) -> bool: ...

    async def begun(self, key: str, tenant: str = DEFAULT_TENANT) -> Session:
        """Return the session that a step of a conversation begins with."""
        ...

    async def joined(
        self, key: str, began: Session, ended: Session, tenant: str = DEFAULT_TENANT
    ) -> tuple[Session, Session]:
        """Keep what a step added, and return the session before and after that.

        Args:
            key: Names the conversation.
            began: The session that the step began with.
            ended: The session that it came back with.
            tenant: Whose conversation it is.
        """
        ...

    def forget(self, key: str) -> None:
        """Let go of what this process keeps of a conversation; another may go on with it."""
        ...

    async def end(self, key: str, tenant: str = DEFAULT_TENANT) -> None:
        """Let go of a conversation for good, everywhere."""
        ...


class OwnSessions(SessionStore):
    """Sessions that this process alone knows of."""

    async def begun(self, key: str, tenant: str = DEFAULT_TENANT) -> Session:
        """Return the session that a step of a conversation begins with."""
        return self.get(key)

    async def joined(
        self, key: str, began: Session, ended: Session, tenant: str = DEFAULT_TENANT
    ) -> tuple[Session, Session]:
        """Keep what a step added, and return the session before and after that."""
        before = self.get(key)
        after = before.joined(began, ended)
        if after != before:
            self.put(key, after)
        return before, after

    async def end(self, key: str, tenant: str = DEFAULT_TENANT) -> None:
        """Let go of a conversation for good."""
        self.forget(key)
