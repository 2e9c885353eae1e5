"""What a gateway serves beside its servers: functions, and HTTP APIs under approvals.

APIs come, go and change while others serve. One that leaves takes no new call; those under way
have a while to end before its connections are closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from toolfold.serve.catalog._call_room import CallRoom
from toolfold.serve.trust.trusted_api import TrustedApi
from toolfold.sources.merged import Sources
from toolfold.sources.openapi import HttpApi, OpenAPISource
from toolfold.sources.source import Source

if TYPE_CHECKING:
    from toolfold.serve.trust.verdicts import Trust

__all__ = ["OtherSources"]

_log = logging.getLogger(__name__)


class OtherSources(Sources):
    """The sources beside the servers.

    Args:
        sources: The sources, in the order in which their tools appear.
        trust: Which operations of APIs wait for a person's approval; None where none does.

    Raises:
        ConfigError: Two have one name.
    """

    def __init__(self, sources: Sequence[Source], trust: Trust | None) -> None:
        self._trust = trust
        super().__init__(map(self._trusted, sources))
        self._by_name = {source.name: source for source in self.all}
        self._held: dict[Source, _Held] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    def _trusted(self, source: Source) -> Source:
        if self._trust is not None and isinstance(source, OpenAPISource):
            return TrustedApi(source, self._trust)
        return source

    @property
    def _apis(self) -> list[TrustedApi]:
        return [source for source in self.all if isinstance(source, TrustedApi)]

    # ---- its life

    async def __aenter__(self) -> Self:
        """Open all sources, all at once."""
        self._held = {source: _Held(source) for source in self.all}
        try:
            for held in self._held.values():
                await held.opened
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all sources, all at once, those that are leaving, too."""
        for task in self._leaving:
            task.cancel()
        held, self._held = tuple(self._held.values()), {}
        closing = [asyncio.create_task(each.close()) for each in held]
        rest = {*closing, *self._leaving}
        if rest:
            await asyncio.wait(rest)
        for task in closing:
            task.result()

    def have(
        self,
        apis: Sequence[HttpApi],
        made: Mapping[str, OpenAPISource],
        room: Callable[[Source], CallRoom | None],
        seconds: float,
    ) -> tuple[Source, ...]:
        """Have these APIs from now on, and return all sources; what was not made anew is the same.

        Args:
            apis: The APIs, in the order in which their tools appear.
            made: Those that are new, or another under the same name.
            room: Returns where the calls of a source run.
            seconds: How long calls under way on those that leave have to end.
        """
        functions = [source for source in self.all if not _is_api(source)]
        kept = {source.name: source for source in self.all if _is_api(source)}
        every = [
            *functions,
            *(self._trusted(made[a.name]) if a.name in made else kept[a.name] for a in apis),
        ]
        gone = [source for source in self.all if source not in every]
        for source in gone:
            held = self._held.pop(source, None)
            if held is not None:
                leaving = _left(held, room(source), seconds)
                task = asyncio.create_task(leaving, name=f"leaving {source.name}")
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)
        self.all = tuple(every)
        self._by_name = {source.name: source for source in self.all}
        for source in every:
            if source not in self._held:
                self._held[source] = _Held(source)
        return self.all

    @property
    def waiting(self) -> int:
        """How many operations wait for a person."""
        return sum(api.waiting for api in self._apis)

    def waiting_of(self, name: str) -> int:
        """Return how many operations of a source wait for a person."""
        return sum(api.waiting for api in self._apis if api.name == name)

    def cause(self, name: str) -> str | None:
        """Return why a source cannot be asked now; None where it can be."""
        away = self._by_name[name].absence()
        return None if away is None else away.cause or "it is still starting"


class _Held:
    """A source that is open, held by one task from its opening to its close.

    Args:
        source: The source.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._closing = asyncio.Event()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(), name=f"source {source.name}")

    async def _hold(self) -> None:
        try:
            async with self.source:
                self.opened.set_result(None)
                await self._closing.wait()
        except BaseException as error:
            if self.opened.done():
                raise
            self.opened.set_exception(error)
            if not isinstance(self.opened.exception(), asyncio.CancelledError):
                _log.error("source %s could not be opened: %r", self.source.name, error)

    async def close(self) -> None:
        """Close it; one that is still being opened is given up."""
        self._closing.set()
        if not self.opened.done():
            self._task.cancel()
        await asyncio.wait((self._task,))
        if not self._task.cancelled():
            self._task.result()


def _is_api(source: Source) -> bool:
    return isinstance(source, TrustedApi | OpenAPISource)


async def _left(held: _Held, room: CallRoom | None, seconds: float) -> None:
    """Close a source that takes no new calls, once those under way have ended or had their time."""
    try:
        if room is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await room.idle.wait()
    finally:
        await held.close()
