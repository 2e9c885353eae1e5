"""What a principal sees of the tools: scoped, then folded, once for each state of the servers.

The scope comes first, so the catalog that search, describe and call look at holds nothing
else. Principals with the same scope share one view; a change of the servers makes new
ones, of which those in use are kept.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolfold import prompts
from toolfold._memo import Memo
from toolfold.fold import Folded, fold
from toolfold.gate import say_unmatched
from toolfold.serve.catalog.pool import Pool, Stock
from toolfold.serve.principals import Principal
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.tool import Json, canonical, is_object

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig

__all__ = ["View", "ViewFolding", "Views", "digest_of", "foldings", "in_mcp"]

_VIEWS_AT_MOST = 64
_OPEN = {"anthropic/alwaysLoad": True}
"""Asks Claude Code, which keeps servers' tools behind a search of its own, to show a tool."""


@dataclass(frozen=True, slots=True)
class View:
    """The tools as one principal sees them."""

    stock: Stock
    folded: Folded

    tools: list[Json]
    """What it lists before anything is revealed."""

    digest: str
    """Names that list."""

    servers: frozenset[str]
    """The servers of which it sees a tool."""

    state: Hashable = None
    """What it was made of, where that is not the stock."""

    async def listed(self, session: Session) -> list[Json]:
        """Return what a conversation lists."""
        if not self.reveals or not session.revealed:
            return self.tools
        folded = await asyncio.to_thread(self.folded.for_session, session)
        return in_mcp(folded, destroys=any(tool.is_destructive for tool in folded.catalog))

    @property
    def reveals(self) -> bool:
        """Whether what a search finds changes the list."""
        strategy = self.folded.bridge.strategy
        return strategy is not None and strategy.reveals


@dataclass(frozen=True, slots=True)
class ViewFolding:
    """How to fold, for everybody or under one profile."""

    settings: Settings
    context_length: int
    """The window that the gate reckons with."""


def foldings(config: GatewayConfig) -> dict[str, ViewFolding]:
    """Return how to fold by profile; under no name, where there is none."""
    own = config.serve.context_length
    found = {"": ViewFolding(config.folding, own)}
    for profile in config.profiles:
        length = profile.context_length or own
        found[profile.name] = ViewFolding(config.folding_under(profile), length)
    return found


class Views:
    """Makes views, and keeps them as long as they are right.

    Args:
        pool: The servers.
        by_profile: How to fold under each profile; under no name, where there is none.
    """

    def __init__(self, pool: Pool, by_profile: Mapping[str, ViewFolding]) -> None:
        self._pool = pool
        self._by_profile = by_profile
        self._views: Memo[Hashable, View] = Memo(_VIEWS_AT_MOST)
        self._making = asyncio.Lock()

    def fold_by(self, by_profile: Mapping[str, ViewFolding]) -> None:
        """Fold otherwise from now on."""
        if by_profile != self._by_profile:
            self._by_profile = by_profile
            self._views = Memo(_VIEWS_AT_MOST)

    def folding(self, principal: Principal) -> ViewFolding:
        """Return how to fold for a principal."""
        # Where its profile is gone, nothing exists for it: how to fold that is all the same.
        return self._by_profile.get(principal.profile) or self._by_profile[""]

    def ready(self, principal: Principal, *, remembers: bool = True) -> View | None:
        """Return a principal's view, where it is made already."""
        if not remembers:
            usual = self.ready(principal)
            if usual is None or not usual.reveals:
                return usual
        view = self._views.get(self._key(principal, remembers))
        return view if view is not None and self._is_right(view, principal) else None

    def _key(self, principal: Principal, remembers: bool) -> Hashable:
        """Return what all who see the same have in common."""
        return principal.scope, principal.read_only, remembers, self.folding(principal)

    def _is_right(self, view: View, principal: Principal) -> bool:
        """Whether nothing has changed since a view was made."""
        return view.stock is self._pool.stock

    async def of(self, principal: Principal, *, remembers: bool = True) -> View:
        """Return what a principal sees now.

        Args:
            principal: Who it is.
            remembers: Whether what was revealed can be kept. Where it cannot, tools that would
                have to be revealed are reached through the bridge, which needs no memory.
        """
        view = self.ready(principal, remembers=remembers)
        if view is not None:
            return view
        if not remembers and not (await self.of(principal)).reveals:
            return await self.of(principal)
        async with self._making:
            while (view := self.ready(principal, remembers=remembers)) is None:
                stock, views = self._pool.stock, self._views
                key, folding = self._key(principal, remembers), self.folding(principal)
                if not remembers:
                    bridged = replace(folding.settings, strategy="bridge")
                    folding = replace(folding, settings=bridged)
                made = await asyncio.to_thread(self._made, principal, stock, folding)
                views.put(key, made)  # those of other settings are kept no more
            return view

    async def awaited(self, principal: Principal, wait: float, *, remembers: bool = True) -> View:
        """Return what a principal lists, once the servers have had a moment to start.

        Args:
            principal: Who it is.
            wait: How many seconds they have in all where nothing is folded by then: what is not
                in such a list cannot be searched for either.
            remembers: Whether what was revealed can be kept.
        """
        await self._pool.first_start.awaited()
        view = await self.of(principal, remembers=remembers)
        if view.folded.active:
            return view
        await self._pool.first_start.awaited(wait)
        return await self.of(principal, remembers=remembers)

    def _made(self, principal: Principal, stock: Stock, folding: ViewFolding) -> View:
        settings = folding.settings
        tools = [
            tool
            # What the host says of a tool wins over what its server says, before anyone judges.
            for tool in map(settings.applied, stock.tools)
            if principal.admits(tool)
        ]
        # Of all tools, before a caller's share of them is folded.
        say_unmatched(stock.tools, settings, self._pool.names)
        folded = fold(
            tools,
            core=[tool.name for tool in tools if tool.name in stock.core],
            configured=self._pool.names,
            context_length=folding.context_length,
            settings=settings,
            shape="mcp",
        )
        listed = in_mcp(folded, destroys=any(tool.is_destructive for tool in tools))
        servers = frozenset(tool.source for tool in tools if tool.source)
        return View(stock, folded, listed, digest_of(listed), servers)


def digest_of(listed: list[Json]) -> str:
    """Return what names a list."""
    return hashlib.sha1(canonical(listed), usedforsecurity=False).hexdigest()


def in_mcp(folded: Folded, *, destroys: bool) -> list[Json]:
    """Return the list as MCP wants it: the bridge's tools stay in this world.

    Of a folded list, what is there in full is meant to be seen: a client that would put it
    behind a search of its own is asked not to.

    Args:
        folded: The tools, folded.
        destroys: Whether one of them may destroy something.
    """
    role, hidden = folded.bridge.role, frozenset(folded.hidden)
    listed: list[Json] = []
    for record in folded.tools:
        name = record.get("name", "")
        own = role(name)
        shown = record if own is None else _annotated(record, own, destroys)
        listed.append(_opened(shown) if folded.active and name not in hidden else shown)
    return listed


def _opened(record: Json) -> Json:
    meta = record.get("_meta")
    return {**record, "_meta": {**(meta if is_object(meta) else {}), **_OPEN}}


def _annotated(record: Json, role: str, destroys: bool) -> Json:
    hints = record.get("annotations")
    hints = dict(hints) if is_object(hints) else {}
    if role != prompts.TOOL_CALL:
        return {**record, "annotations": {**hints, "openWorldHint": False}}
    # What it runs may do anything that one of the tools does.
    return {
        **record,
        "annotations": {**hints, "readOnlyHint": False, "destructiveHint": destroys},
    }
