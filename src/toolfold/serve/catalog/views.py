"""What a principal sees of the tools: scoped, then folded, once for each state of the servers.

The scope comes first, so the catalog that search, describe and call look at holds nothing
else. Principals with the same scope share one view; a change of the servers makes new
ones, of which those in use are kept.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from typing import Literal

from toolfold import prompts
from toolfold.fold import Folded, fold
from toolfold.memo import Memo
from toolfold.scope import Scope
from toolfold.serve import words
from toolfold.serve.catalog.pool import Pool, Stock
from toolfold.serve.principals import Principal
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.tool import Json, Tool, canonical, is_object
from toolfold.wire import write

__all__ = ["View", "Views"]

_VIEWS_AT_MOST = 64
_MANY = 300
"""From this many tools on, folding runs beside the event loop."""


@dataclass(frozen=True, slots=True)
class View:
    """The tools as one principal sees them."""

    stock: Stock
    folded: Folded
    mode: Literal["bridge", "reveal"]

    tools: list[Json]
    """What it lists before anything is revealed."""

    digest: str
    """Names that list."""

    servers: frozenset[str]
    """The servers of which it sees a tool."""

    def listed(self, session: Session) -> list[Json]:
        """Return what a conversation lists."""
        if not self.reveals or not session.revealed:
            return self.tools
        folded = self.folded.bridge.folded
        return [*self.tools, *(write(folded[n], "mcp") for n in session.revealed if n in folded)]

    @property
    def reveals(self) -> bool:
        """Whether what a search finds joins the list."""
        return self.mode == "reveal" and self.folded.active


class Views:
    """Makes views, and keeps them as long as they are right.

    Args:
        pool: The servers.
        settings: How to fold.
        context_length: The window that the gate reckons with.
        mode: How clients reach folded tools.
    """

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        context_length: int,
        mode: Literal["bridge", "reveal"],
    ) -> None:
        self._pool = pool
        # Stubs need the client to list anew after each search; `reveal` is that, done right.
        self._settings = replace(settings, strategy="bridge")
        self._context_length = context_length
        self._mode: Literal["bridge", "reveal"] = mode
        self._views: Memo[tuple[Scope, bool], View] = Memo(_VIEWS_AT_MOST)
        self._making = asyncio.Lock()

    def ready(self, principal: Principal) -> View | None:
        """Return a principal's view, where it is made already."""
        view = self._views.get((principal.scope, principal.read_only))
        return view if view is not None and view.stock is self._pool.stock else None

    async def of(self, principal: Principal) -> View:
        """Return what a principal sees now."""
        view = self.ready(principal)
        if view is not None:
            return view
        async with self._making:
            while (view := self.ready(principal)) is None:
                stock = self._pool.stock
                if len(stock.tools) < _MANY:
                    made = self._made(principal, stock)
                else:
                    made = await asyncio.to_thread(self._made, principal, stock)
                self._views.put((principal.scope, principal.read_only), made)
            return view

    def _made(self, principal: Principal, stock: Stock) -> View:
        tools = [
            tool
            # What the host says of a tool wins over what its server says, before anyone judges.
            for tool in map(self._settings.applied, stock.tools)
            if principal.admits(tool, stock.routes[tool.name].full_name)
        ]
        folded = fold(
            tools, context_length=self._context_length, settings=self._settings, shape="mcp"
        )
        listed = [_in_mcp(record, tools) for record in folded.tools]
        if self._mode == "reveal" and folded.active:
            listed = [_revealing(r) for r in listed if r["name"] != prompts.TOOL_CALL]
        digest = hashlib.sha1(canonical(listed), usedforsecurity=False).hexdigest()
        servers = frozenset(tool.source for tool in tools if tool.source)
        return View(stock, folded, self._mode, listed, digest, servers)


def _in_mcp(record: Json, tools: list[Tool]) -> Json:
    """Return a record of the list as MCP wants it: the bridge's tools stay in this world."""
    if record.get("name") not in prompts.BRIDGE_NAMES:
        return record
    hints = record.get("annotations")
    hints = dict(hints) if is_object(hints) else {}
    if record["name"] != prompts.TOOL_CALL:
        return {**record, "annotations": {**hints, "openWorldHint": False}}
    # What it runs may do anything that one of the tools does.
    destroys = any(tool.is_destructive for tool in tools)
    return {
        **record,
        "annotations": {**hints, "readOnlyHint": False, "destructiveHint": destroys},
    }


def _revealing(record: Json) -> Json:
    if record.get("name") != prompts.TOOL_SEARCH:
        return record
    told = record["description"]
    for texts in prompts.TEXTS.values():
        told = told.replace(texts.search, words.REVEAL_SEARCH, 1)
    return {**record, "description": told}
