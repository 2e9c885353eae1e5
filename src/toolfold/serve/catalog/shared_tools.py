"""A gateway's part in a shared catalog: what it searches there, writes there and runs of it.

The catalog says what there is; what runs is the tool that its server lists now, within the same
scope. So a row in a database lets nobody call what the gateway itself would not let them call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from toolfold import prompts
from toolfold.absent import AbsentSource
from toolfold.answer import Answer, Invocation
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.serve.catalog.catalog_feed import CatalogFeed
from toolfold.serve.catalog.pool import Pool
from toolfold.serve.catalog.shared_views import SharedViews
from toolfold.serve.catalog.views import View, ViewFolding
from toolfold.serve.principals import LOCAL, Principal
from toolfold.settings import Settings
from toolfold.sources.source import SourceError
from toolfold.tool import Tool
from toolfold.wire.write import served_as

if TYPE_CHECKING:
    from toolfold.shared import SharedCatalog

__all__ = ["SharedTools"]


class _OtherwiseError(SourceError):
    """A tool is another by now than the catalog says. Its text is for the model."""

    def for_model(self, tool: Tool) -> str:
        return str(self)


class SharedTools:
    """What a gateway has to do with a shared catalog.

    Args:
        catalog: The catalog that its servers' tools are written to.
        pool: The servers.
        by_profile: How to fold under each profile; under no name, where there is none.
    """

    def __init__(
        self, catalog: SharedCatalog, pool: Pool, by_profile: Mapping[str, ViewFolding]
    ) -> None:
        self._catalog = catalog
        self._pool = pool
        self.views = SharedViews(pool, by_profile, catalog)
        """What principals see."""
        self._feed = CatalogFeed(catalog, pool, self._pushed)
        pool.on_listed = self._feed.note

    async def close(self) -> None:
        """Write no more."""
        await self._feed.close()

    def listener(self) -> Callable[[str | None], None]:
        """Return what hears, in any thread, that a tenant's catalog was changed, or any.

        To be asked for in the event loop.
        """
        loop = asyncio.get_running_loop()

        def heard(tenant: str | None) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._changed, tenant)

        return heard

    def _changed(self, tenant: str | None) -> None:
        self.views.changed(tenant)
        self._pool.say_changed("tools")

    def _pushed(self, tools: Sequence[Tool]) -> list[Tool]:
        """Return tools as they are shared: what the settings say of them is said there, too.

        What a profile says of them beside that is said where they are read.
        """
        settings = self.views.folding(LOCAL).settings
        return [settings.applied(tool) for tool in tools]

    def of_tenant(
        self, absent: tuple[AbsentSource, ...], view: View | None, principal: Principal
    ) -> tuple[AbsentSource, ...]:
        """Return the sources that cannot be asked now of which a principal's tenant may know."""
        if view is None or principal.tenant == self._catalog.tenant:
            return absent
        return tuple(away for away in absent if away.name in view.servers)

    async def live(self, invocation: Invocation, principal: Principal) -> Invocation:
        """Return a call of a tool that was found as a call of the one that its server has now.

        A server that waits for its first call is started.

        Raises:
            SourceError: The server cannot be asked now, or has no such tool for the principal, or
                has one that takes other arguments.
        """
        tool, settings = invocation.tool, self.views.folding(principal).settings
        await self._pool.started(tool.source or "")
        now = self._served(tool, settings)
        if now is None or not principal.admits(now):
            raise _OtherwiseError(prompts.not_available(tool.shown_name, ()))
        if now == tool:
            return replace(invocation, tool=now)
        # It takes other arguments, maybe: they are checked anew.
        bridge = Bridge.over(Catalog([now]), settings)
        checked = bridge.resolve(now.name, dict(invocation.arguments), invocation.session)
        if isinstance(checked, Answer):
            raise _OtherwiseError(checked.text)
        return replace(checked, via=invocation.via)

    def _served(self, tool: Tool, settings: Settings) -> Tool | None:
        """Return a tool as its source lists it now."""
        located = self._pool.stock.sources.get(tool.name)
        if located is None or located.source.name != tool.source:
            return None
        own = located.tool
        return settings.applied(own if own.name == tool.name else served_as(own, tool.name))
