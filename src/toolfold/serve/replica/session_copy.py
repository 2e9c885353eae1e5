"""A session as one replica holds it; others may hold it, too."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from toolfold.store.postgres.client_sessions import ClientSession

__all__ = ["SessionCopy"]


@dataclass(slots=True)
class SessionCopy:
    """A session that this replica holds."""

    session: ClientSession
    is_written: bool
    """Whether the others know of it."""

    is_adopted: bool = False
    busy: int = 0
    is_used: bool = True
    """Whether it was, since its row was touched."""

    last: float = 0.0
    streams: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    """The requests that are being answered; each event is set when that is over."""
