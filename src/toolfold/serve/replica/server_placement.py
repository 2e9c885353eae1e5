"""Where one server runs that runs once: here, while this replica has its lease, or elsewhere."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from toolfold.serve.replica.forwarded_connection import ForwardedConnection, Holder
from toolfold.serve.replica.held_server import HeldConnection, HeldServer
from toolfold.serve.replica.tenure import Tenure
from toolfold.serve.replica.watchdog import Watchdog
from toolfold.sources.mcp._server_errors import ServerDownError
from toolfold.sources.mcp.transports._process import start
from toolfold.sources.mcp.transports._stdio import pipes
from toolfold.store.store import StoreAwayError

if TYPE_CHECKING:
    from toolfold.serve.replica.servers_once import ServersOnce
    from toolfold.sources.mcp._server_words import ServerWords
    from toolfold.sources.mcp.connection import Peer
    from toolfold.sources.mcp.placement import ReachedServer
    from toolfold.sources.mcp.server import Server

__all__ = ["ServerPlacement"]

LOOKS = 0.5
"""How often it is looked where a server runs that is needed, in seconds."""

LINGER = 0.5
"""How long after its last answer a lease is kept, so that the answer arrives before the news that
another has the server."""

_log = logging.getLogger(__name__)


class ServerPlacement:
    """Where a server runs.

    Args:
        server: How it is started.
        once: What all such servers of this replica have in common.
    """

    def __init__(self, server: Server, once: ServersOnce) -> None:
        self._server = server
        self._once = once
        self._tenure: Tenure | None = None
        self._elsewhere: Holder | None = None
        self.held: HeldServer | None = None
        """The server, while it runs here."""

    @property
    def is_here(self) -> bool:
        """Whether this replica has the lease."""
        return self._tenure is not None and self._tenure.holds

    async def settled(self) -> None:
        """Return when it is known that it is to run here, or that it runs elsewhere.

        Raises:
            ServerDownError: Neither, for as long as it may take to start.
        """
        name = self._server.name
        with suppress(StoreAwayError):
            if self._tenure is not None and self.is_here:
                # It is started anew here: the others must know that it is another.
                await self._tenure.end()
                lease = await self._once.take(name, anew=True)
                self._tenure = None if lease is None else Tenure(lease, self._once.take)
                if self._tenure is not None:
                    return
        await self.let_go()
        deadline = time.monotonic() + self._server.start_timeout
        while True:
            why = "no replica has begun to run it"
            try:
                lease = await self._once.take(name)
                if lease is not None:
                    self._tenure = Tenure(lease, self._once.take)
                    _log.info("server %s runs at this replica (%s)", name, self._once.replicas.name)
                    return
                self._elsewhere = await self._once.joined(name)
                if self._elsewhere is not None:
                    _log.info("server %s runs at another replica", name)
                    return
            except StoreAwayError as error:
                # Clients read this: where the database is, is none of their business.
                why = "where it runs cannot be found out, because the database is away"
                _log.debug("server %s: %s", name, error)
            if time.monotonic() > deadline:
                raise ServerDownError(name, why, lost=False)
            await self._once.changed(name, LOOKS)

    @asynccontextmanager
    async def reached(self, peer: Peer, words: ServerWords) -> AsyncGenerator[ReachedServer]:
        """Run it here, or speak with the replica that runs it, as long as the block lasts."""
        if self._tenure is not None:
            async with self._run(self._tenure, peer, words) as reached:
                yield reached
        else:
            assert self._elsewhere is not None
            yield (
                ForwardedConnection(self._server.name, self._elsewhere, self._once, peer),
                None,
            )

    @asynccontextmanager
    async def _run(
        self, tenure: Tenure, peer: Peer, words: ServerWords
    ) -> AsyncGenerator[ReachedServer]:
        watchdog = Watchdog(tenure.lease.until)
        tenure.on_renewed = watchdog.extend
        try:
            child = await start(
                self._server, through=watchdog.command, descriptors=watchdog.descriptors
            )
            watchdog.started()
            child.listen(words.heard)
            held = HeldServer(self._once.replicas, tenure, peer, self._once.scope)
            async with pipes(child, words.printed) as streams:
                self.held = held
                yield HeldConnection(streams, held, tenure), child
        finally:
            try:
                if self.held is not None:
                    await self.held.farewell(LINGER)
            finally:
                self.held = None
                watchdog.close()

    async def let_go(self) -> None:
        """Let others run it: here it has ended."""
        tenure, self._tenure = self._tenure, None
        self._elsewhere = None
        if tenure is not None:
            await tenure.end()
            with suppress(StoreAwayError):
                await self._once.leave(tenure.lease)
