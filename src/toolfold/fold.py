"""Fold a list of tools into what the model sees.

`fold` is pure: tools, settings, scope and session in, a `Folded` out. Below the gate the
tools go out as they came in; above it the deferrable ones leave, or lose their
parameters, and the bridge's tools come in. The same input gives the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from toolfold import prompts
from toolfold.answer import Answer, Invocation
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog, owner
from toolfold.errors import CatalogError, NameClashError
from toolfold.gate import judge
from toolfold.memo import Memo
from toolfold.render import listing_text
from toolfold.scope import EVERYTHING, Scope
from toolfold.search import Ranker, ranker_named
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.tokens import TokenCounter, compact, context_window, estimate
from toolfold.tool import Json, Shape, Tool
from toolfold.wire import Entry, read, write
from toolfold.wire.assemble import assemble, default_shape

__all__ = ["Folded", "Report", "fold"]

_log = logging.getLogger(__name__)
_SIZES: Memo[tuple[str, Shape], int] = Memo(65_536)


@dataclass(frozen=True, slots=True)
class Report:
    """What folding did: counts, tokens, and why."""

    active: bool
    strategy: Literal["bridge", "stub"]
    reason: str
    tools_before: int
    tools_after: int
    kept: int
    deferred: int
    tokens_before: int
    tokens_after: int
    deferrable_tokens: int
    threshold_tokens: int
    context_length: int | None

    def __str__(self) -> str:
        state = f"folded ({self.strategy})" if self.active else "not folded"
        return (
            f"{state}: {self.reason}. {self.tools_before} tools, {self.tokens_before:,} tokens "
            f"-> {self.tools_after} tools, {self.tokens_after:,} tokens"
        )


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded list of tools. Immutable; safe to share between threads."""

    tools: list[Json]
    """What to send to the model, in the wire shape in which the tools came."""

    active: bool
    """Whether anything was folded. If not, `tools` are the very tools that came in."""

    report: Report
    """Counts and tokens before and after, and why."""

    guidance: str | None
    """A short note for the system prompt, where anything was folded."""

    session: Session
    """The conversation this was folded for."""

    bridge: Bridge
    """What answers the model's calls."""

    @property
    def catalog(self) -> Catalog:
        """Every tool of the scope, folded or not."""
        return self.bridge.catalog

    def resolve(
        self, name: str, arguments: Json = None, *, session: Session | None = None
    ) -> Answer | Invocation:
        """Return what a model's call comes to: an answer for it, or a call for the host.

        Args:
            name: The tool name that the model called.
            arguments: Its arguments, as an object or as JSON text.
            session: The conversation so far; by default, that of the fold. A host that
                resolves several calls of one turn passes on the session of the last.
        """
        return self.bridge.resolve(name, arguments, self.session if session is None else session)


def fold(
    tools: Iterable[object] | Catalog,
    *,
    context_length: int | None = None,
    core: Iterable[str] = (),
    settings: Settings | None = None,
    scope: Scope = EVERYTHING,
    session: Session | None = None,
    model: str | None = None,
    shape: Shape | None = None,
    ranker: Ranker | None = None,
    count: TokenCounter = estimate,
) -> Folded:
    """Fold a list of tools into what the model sees.

    Example:
        folded = fold(tools, context_length=200_000, core={"read_file", "terminal"})
        reply = client.chat.completions.create(tools=folded.tools, ...)

    Args:
        tools: Tools in any wire shape, `Tool`s and functions, mixed; or a `Catalog`.
        context_length: The model's context window, in tokens.
        core: Names or patterns of tools that stay open, beside those of the settings.
        settings: How to fold. The defaults fold above 10 % of the window.
        scope: Which of the tools exist for this caller.
        session: The conversation so far.
        model: The model's name: its window is looked up where `context_length` is not given.
        shape: The wire shape to write; by default the one in which the tools came.
        ranker: How to rank, in place of the settings' choice.
        count: Counts the tokens of a text, in place of characters over four.

    Raises:
        InvalidToolError: An entry is not a tool.
        NameClashError: Two tools have one name, or one has the name of a bridge tool.
        ConfigError: The settings cannot be used.
    """
    settings = settings or Settings()
    if core:
        settings = replace(settings, core=(*settings.core, *_in_order(core)))
    session = session or Session()
    context_length = context_length if context_length is not None else context_window(model)
    entries = _entries(tools, lenient=settings.enabled == "off")
    entries = _within(entries, scope) if not scope.holds_everything else entries
    entries = _with_aliases(entries, settings.aliases) if settings.aliases else entries
    out = shape or default_shape(entries)
    every = tuple(tool for entry in entries for tool in entry.tools)
    inner = frozenset(t.name for t in every if t.name in prompts.BRIDGE_NAMES and prompts.is_own(t))
    candidates = tuple(t for t in every if t.name not in inner) if inner else every
    if settings.enabled != "off":
        _refuse_bridge_names(candidates)
    costs = _costs(entries, out, count, inner)
    verdict = judge(candidates, costs, settings, context_length)

    strategy = settings.strategy if verdict.folded else None
    if inner and strategy == "bridge":
        raise NameClashError(
            prompts.TOOL_SEARCH,
            ("an earlier fold of this list", "the bridge of this one"),
            hint="fold once, over all the tools",
        )
    catalog = _catalog(candidates if strategy else every, lenient=settings.enabled == "off")
    folded = Catalog(t for t in candidates if t.name in verdict.folded) if strategy else Catalog(())
    hidden = folded
    changes: dict[str, Mapping[str, Json] | None] = {}
    added: Sequence[Tool] = ()
    if strategy == "bridge":
        changes = dict.fromkeys(verdict.folded)
        added = _bridge_tools(folded, settings, count)
    elif strategy == "stub":
        hidden = Catalog(t for t in folded if t.name not in session.revealed)
        changes = {tool.name: prompts.STUB_PARAMETERS for tool in hidden}
        added = (prompts.stub_search_tool(len(folded)),)
        changes |= dict.fromkeys(inner)

    written = assemble(entries, out, changes, added)
    before = _tokens(entries, out, count, costs)
    report = Report(
        active=strategy is not None,
        strategy=settings.strategy,
        reason=verdict.reason,
        tools_before=len(every),
        tools_after=len(every) - (len(folded) if strategy == "bridge" else len(inner)) + len(added)
        if strategy
        else len(every),
        kept=len(candidates) - len(hidden),
        deferred=len(hidden),
        tokens_before=before,
        tokens_after=count(compact(written)) if strategy else before,
        deferrable_tokens=verdict.deferrable_tokens,
        threshold_tokens=verdict.threshold_tokens,
        context_length=context_length,
    )
    if strategy:
        _log.info(
            "folding is active: %d kept, %d deferred (~%d tokens, threshold ~%d)",
            report.kept, report.deferred, report.deferrable_tokens, report.threshold_tokens,
        )  # fmt: skip
    chosen = ranker or ranker_named(_ranker_name(settings))
    guidance = {"bridge": prompts.BRIDGE_GUIDANCE, "stub": prompts.STUB_GUIDANCE}
    return Folded(
        tools=written,
        active=strategy is not None,
        report=report,
        guidance=guidance[strategy] if strategy else None,
        session=session,
        bridge=Bridge(catalog, folded, settings, strategy, chosen, count),
    )


def _in_order(names: Iterable[str]) -> Iterable[str]:
    # A set has no order of its own; the settings it goes into must.
    return sorted(names) if isinstance(names, set | frozenset) else names


def _entries(tools: Iterable[object] | Catalog, *, lenient: bool) -> tuple[Entry, ...]:
    if not lenient:
        return read(tools)
    entries: list[Entry] = []
    for item in tools:
        try:
            entries.extend(read([item]))
        except CatalogError:
            # With folding off nothing may stand between the caller and the provider.
            entries.append(Entry(item, None, (), (), 0))
    return tuple(entries)


def _catalog(tools: Sequence[Tool], *, lenient: bool) -> Catalog:
    return Catalog({tool.name: tool for tool in tools}.values() if lenient else tools)


def _within(entries: Sequence[Entry], scope: Scope) -> tuple[Entry, ...]:
    """Return the entries with the tools that the scope leaves; a provider's own stay."""
    kept: list[Entry] = []
    for entry in entries:
        inside = [i for i, tool in enumerate(entry.tools) if tool in scope]
        if len(inside) == len(entry.tools):
            kept.append(entry)
        elif inside:
            kept.append(entry.only(inside))
    return tuple(kept)


def _with_aliases(
    entries: Sequence[Entry], aliases: Mapping[str, tuple[str, ...]]
) -> tuple[Entry, ...]:
    def named(tool: Tool) -> Tool:
        more = aliases.get(tool.name)
        return replace(tool, aliases=(*tool.aliases, *more)) if more else tool

    return tuple(e._replace(tools=tuple(named(tool) for tool in e.tools)) for e in entries)


def _refuse_bridge_names(tools: Iterable[Tool]) -> None:
    for tool in tools:
        if tool.name in prompts.BRIDGE_NAMES:
            raise NameClashError(
                tool.name,
                (owner(tool), "toolfold's bridge"),
                hint="rename the tool: the bridge needs this name",
            )


def _bridge_tools(folded: Catalog, settings: Settings, count: TokenCounter) -> Sequence[Tool]:
    listing = listing_text(folded, settings.listing, settings.listing_max_tokens, count)
    return (
        prompts.search_tool(len(folded), listing),
        prompts.DESCRIBE_TOOL,
        prompts.CALL_TOOL,
    )


def _ranker_name(settings: Settings) -> str:
    if settings.ranker != "default":
        return settings.ranker
    return "keyword" if settings.strategy == "stub" else "bm25"


def _costs(
    entries: Sequence[Entry], shape: Shape, count: TokenCounter, inner: frozenset[str]
) -> list[int]:
    """Return what each tool of the entries costs, an earlier fold's bridge left out."""
    costs: list[int] = []
    for entry in entries:
        for i, tool in enumerate(entry.tools):
            if tool.name in inner:
                continue
            if count is not estimate:
                costs.append(count(compact(write(tool, shape))))
            elif entry.shape == shape and entry.characters:
                costs.append(-(-entry.characters[i] // 4))
            else:
                costs.append(-(-_size(tool, shape) // 4))
    return costs


def _size(tool: Tool, shape: Shape) -> int:
    return _SIZES.get_or((tool.digest, shape), lambda: len(compact(write(tool, shape))))


def _tokens(
    entries: Sequence[Entry], shape: Shape, count: TokenCounter, costs: Sequence[int]
) -> int:
    """Return what the whole list costs before it is folded."""
    if count is not estimate or any(entry.shape != shape or not entry.size for entry in entries):
        return count(compact(assemble(entries, shape, {}, ())))
    return -(-(sum(entry.size + 1 for entry in entries) + 1) // 4) if costs else 1
