"""Fold a shared catalog into what the model sees."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace

from toolfold.catalog import Catalog
from toolfold.errors import ConfigError
from toolfold.folded import Assembly, Folded
from toolfold.gate import GateVerdict, policies_of
from toolfold.scope import EVERYTHING, Scope
from toolfold.search import chosen_ranker
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.shared.reading import CatalogReading, Reach, SourceCounts
from toolfold.shared.shared_catalog import SharedCatalog
from toolfold.shared_fold._window import Outline
from toolfold.shared_fold.shared_bridge import SharedBridge, known_tools
from toolfold.store.store import StoreAwayError
from toolfold.strategy import STRATEGIES
from toolfold.tokens import TokenCounter, estimate
from toolfold.tool import Shape, Tool
from toolfold.wire import Entry

__all__ = ["fold_shared"]

OPEN_AT_MOST = 128
"""How many tools may stay open: each of them is held, and costs the model tokens."""

_log = logging.getLogger(__name__)


def fold_shared(
    catalog: SharedCatalog,
    *,
    scope: Scope = EVERYTHING,
    sources: Collection[str] | None = None,
    read_only: bool = False,
    core: Iterable[str] = (),
    settings: Settings | None = None,
    configured: Iterable[str] = (),
    session: Session | None = None,
    shape: Shape = "openai-chat",
    count: TokenCounter = estimate,
    lenient: bool = False,
    before: Folded | None = None,
) -> Folded:
    """Fold a shared catalog: every tool but the open ones is behind the bridge, and held nowhere.

    What comes back is used like what `fold` gives. Each call asks the database, in one
    transaction; an asynchronous host resolves in a thread, as `Folded.may_block` says.

    Example:
        with SharedCatalog("postgresql://app@db/tools", tenant="acme") as catalog:
            folded = fold_shared(catalog, scope=Scope(allow=("@github", "@mail")))
            answer = folded.resolve("tool_search", {"query": "open a pull request"})

    Args:
        catalog: The shared catalog. It stays open as long as calls are resolved.
        scope: Which of its tools exist for this caller.
        sources: The sources that can be called; None for all.
        read_only: Whether only tools that say they change nothing exist.
        core: Names or patterns of tools that stay open, beside those of the settings.
        settings: How to fold. The strategy is the bridge, whatever they say, and what is listed
            are sources, never names.
        configured: The names of all sources that there are for anybody; by default the catalog's.
        session: The conversation so far.
        shape: The wire shape to write.
        count: Counts the tokens of a text, in place of characters over four.
        lenient: Whether the bridge is there while the database is away: as it was before, or over
            what it does not know yet.
        before: An earlier fold for the same caller: the tools that it found can be called while
            the database is away.

    Raises:
        StoreAwayError: The database is away, and that is not to be borne.
        ConfigError: The settings turn folding off.
    """
    settings = settings or Settings()
    if settings.enabled == "off":
        raise ConfigError(
            "folding is off, and a shared catalog cannot be shown whole",
            hint="leave `enabled` out, or fold the tools themselves",
        )
    listing = "sources" if settings.listing == "names" else settings.listing
    settings = replace(settings, strategy="bridge", listing=listing, core=(*settings.core, *core))
    own = Reach(scope, None if sources is None else frozenset(sources), read_only)
    earlier = None if before is None else before.bridge
    open_tools: tuple[Tool, ...] = ()
    counts: SourceCounts = {}
    everybodys = frozenset(configured)
    try:
        with catalog.reading(own) as reading:
            open_tools = _open_tools(reading, settings)
            counts = reading.sources
            everybodys = everybodys or reading.every_source
    except StoreAwayError:
        if not lenient:
            raise
        if before is not None and isinstance(earlier, SharedBridge) and earlier.reach == own:
            return before
    folded = Outline(counts, open_tools, configured=everybodys)
    bridge = SharedBridge(
        Catalog(open_tools, configured=everybodys) if open_tools else folded,
        folded,
        settings,
        STRATEGIES["bridge"],
        chosen_ranker(settings, "hybrid"),
        count,
        shared=catalog,
        reach=own,
        configured=everybodys,
        open_tools=open_tools,
        known=earlier.known if isinstance(earlier, SharedBridge) else known_tools(),
    )
    return _assembled(bridge, shape, session or Session())


def _open_tools(reading: CatalogReading, settings: Settings) -> tuple[Tool, ...]:
    """Return the tools that are never folded."""
    patterns = settings.open_tools
    if not patterns:
        return ()
    found = reading.within(Scope(allow=tuple(patterns)), OPEN_AT_MOST + 1)
    tools = [tool for tool in map(settings.applied, found) if tool in reading.reach]
    policies = policies_of(tools, settings)
    stay = [tool for tool, own in zip(tools, policies, strict=True) if own == "never"]
    if len(stay) > OPEN_AT_MOST:
        _log.warning("more than %d tools are to stay open; the others are folded", OPEN_AT_MOST)
    return tuple(stay[:OPEN_AT_MOST])


def _assembled(bridge: SharedBridge, shape: Shape, session: Session) -> Folded:
    whole = len(bridge.folded) + len(bridge.open_tools)

    def anew(session: Session) -> Folded:
        return _assembled(bridge, shape, session)

    assembly = Assembly(
        entries=[Entry(tool, None, (tool,), (), 0) for tool in bridge.open_tools],
        shape=shape,
        strategy="bridge",
        provider=None,
        anew=anew,
        verdict=GateVerdict(frozenset(), "the catalog is shared", 0, 0),
        context_length=None,
        tokens_before=0,
        tools_before=whole,
        renamed=(),
        bridge=bridge,
    )
    folded = assembly.shown(session)
    report = replace(
        folded.report,
        tools_after=len(folded.tools),
        kept=len(bridge.open_tools),
        deferred=len(bridge.folded),
    )
    return replace(folded, report=report)
