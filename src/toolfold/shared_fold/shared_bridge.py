"""The bridge over a shared catalog: every call looks at one state of it, through a window.

What answers is the bridge itself, so its texts, limits and budgets are those of a catalog that
is held. While the database is away, tools that were found before can still be called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolfold import prompts
from toolfold._companions import companions
from toolfold._memo import Memo
from toolfold._suggestions import words_of
from toolfold.absent import AbsentSource
from toolfold.answer import Answer, Hit, Invocation
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.search import Ranker
from toolfold.search.memory import SearchMemory
from toolfold.session import Session
from toolfold.shared.reading import CatalogReading, Reach
from toolfold.shared.shared_catalog import SharedCatalog
from toolfold.shared_fold._window import Window, WindowRanker
from toolfold.store.store import StoreAwayError
from toolfold.tool import Json, Tool

__all__ = ["SharedBridge", "known_tools"]

KNOWN_AT_MOST = 64
"""How many tools that were found are known while the database is away."""


_NEAR = 25
"""How many tools are found for a name that none has, to learn how names are spelt."""


def known_tools() -> Memo[str, Tool]:
    """Return room for the tools that were found last, by name."""
    return Memo(KNOWN_AT_MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBridge(Bridge):
    """Answers the model's calls over a shared catalog. Safe to share between threads.

    Its own catalog is an outline, which holds no tools but those that are not folded.
    """

    shared: SharedCatalog
    """Where the tools are."""

    reach: Reach
    """What of them there is for the caller."""

    configured: frozenset[str] = frozenset()
    """The names of all sources that there are for anybody; empty for those of the catalog."""

    open_tools: tuple[Tool, ...] = ()
    """The tools that are not folded."""

    known: Memo[str, Tool] = field(default_factory=known_tools)
    """The tools that were found last."""

    def resolve(
        self,
        name: str,
        arguments: Json,
        session: Session,
        *,
        absent: Sequence[AbsentSource] = (),
        memory: SearchMemory | None = None,
    ) -> Answer | Invocation:
        """Return what a model's call comes to; a memory is not asked.

        Args:
            name: The tool name that the model called.
            arguments: Its arguments.
            session: The conversation so far.
            absent: The sources that are not there now.
            memory: Not asked: its evidence is about a catalog that is held.
        """
        try:
            with self.shared.reading(self.reach) as reading:
                # What a source had when it last ran is in the catalog still.
                away = [replace(source, tools=()) for source in absent]
                resolved = self._over(reading).resolve(name, arguments, session, absent=away)
        except StoreAwayError:
            return self._while_away(name, arguments, session)
        found = (resolved.tool,) if isinstance(resolved, Invocation) else resolved.found
        for tool in found:
            self.known.put(tool.name, tool)
        return resolved

    def may_block(self, name: str, arguments: Json = None) -> bool:
        """Whether resolving a call may take long: the database is asked whatever it is."""
        return True

    def _over(self, reading: CatalogReading) -> Bridge:
        configured = self.configured or reading.every_source
        folded = Window(reading, self.settings, self.open_tools, configured=configured)
        catalog = folded
        if self.open_tools:
            catalog = Window(
                reading, self.settings, self.open_tools, is_folded=False, configured=configured
            )
        return _WindowBridge(
            catalog, folded, self.settings, self.strategy, WindowRanker(folded), self.count,
            window=folded, whole=catalog,
        )  # fmt: skip

    def _while_away(self, name: str, arguments: Json, session: Session) -> Answer | Invocation:
        """Answer from what is known: a tool that was found can be called."""
        away = Answer(self.names.said(prompts.CATALOG_AWAY), is_error=True, session=session)
        if self.role(name) in (prompts.TOOL_SEARCH, prompts.TOOL_DESCRIBE):
            return away
        tools = {tool.wire_name: tool for tool in (*self.known.values(), *self.open_tools)}
        known = Catalog(tools.values(), configured=self.configured or self.catalog.configured)
        open_names = {tool.name for tool in self.open_tools}
        folded = Catalog(
            (tool for tool in known if tool.name not in open_names), configured=known.configured
        )
        bridge = Bridge(known, folded, self.settings, self.strategy, self.ranker, self.count)
        resolved = bridge.resolve(name, arguments, session)
        is_known = isinstance(resolved, Invocation) or resolved.meant is not None
        return resolved if is_known else away


@dataclass(frozen=True, slots=True, kw_only=True)
class _WindowBridge(Bridge):
    """The bridge over the window of one call."""

    window: Window
    """The folded tools."""

    whole: Window
    """All of them."""

    @property
    def _embedded_ranker(self) -> Ranker:
        return WindowRanker(self.whole)

    def near(self, name: str, arguments: Json = None) -> tuple[Tool, ...]:
        """Return the tools that a name may mean which none has, the likeliest first."""
        # What is spelt like the names that a search finds is what they are called.
        self.whole.search(" ".join(words_of(name)), _NEAR)
        return Bridge.near(self, name, arguments)

    def _companions(
        self, shown: Sequence[Sequence[Hit]], others: Sequence[Sequence[Hit]]
    ) -> tuple[Hit, ...]:
        best = [hits[0].tool for hits in shown if hits]
        if not best:
            return ()
        found = companions(shown, others, self.window.beside(best))
        # Of what stands beside hits only names were read.
        tools: Mapping[str, Tool] = self.window.in_full([hit.name for hit in found])
        return tuple(replace(hit, tool=tools[hit.name]) for hit in found if hit.name in tools)
