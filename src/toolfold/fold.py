"""Fold a list of tools into what the model sees.

`fold` is pure: tools, settings, scope and session in, a `Folded` out. Below the gate the
tools go out as they came in; above it the strategy says which leave, lose their parameters
or come in. The same input gives the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from toolfold import prompts
from toolfold._clashes import Renamed, renamed_entries, settled
from toolfold._costs import list_tokens, tool_costs
from toolfold._intake import intake
from toolfold._json_values import compact
from toolfold.absent import AbsentSource
from toolfold.answer import Answer, Invocation
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.errors import ConfigError
from toolfold.gate import GateVerdict, judge, say_unmatched
from toolfold.scope import EVERYTHING, Scope
from toolfold.search import Ranker, chosen_ranker
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.settings.check import suggestion
from toolfold.settings.model import StrategyName
from toolfold.strategy import ListChange, strategy_of
from toolfold.tokens import TokenCounter, context_window, estimate
from toolfold.tool import Json, Shape, Tool
from toolfold.wire import Entry
from toolfold.wire.assemble import assemble, default_shape

__all__ = ["Folded", "Report", "fold"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    """What folding did: counts, tokens, and why."""

    active: bool
    """Whether anything was folded."""

    strategy: StrategyName
    """How, where anything was."""

    reason: str
    """Why, as one clause for a person."""

    tools_before: int
    """How many tools the scope left."""

    tools_after: int
    """How many the model sees."""

    kept: int
    """How many of the tools it sees in full."""

    deferred: int
    """How many it does not."""

    tokens_before: int
    """What the whole list would have cost."""

    tokens_after: int
    """What the list that goes out costs."""

    deferrable_tokens: int
    """What the tools that may be folded cost."""

    threshold_tokens: int
    """From what cost of those on the bridge folds in `auto`."""

    context_length: int | None
    """The context window, where it is known."""

    renamed: tuple[Renamed, ...] = ()
    """The tools of sources that are served under another name, because theirs was taken."""

    def __str__(self) -> str:
        state = f"folded ({self.strategy})" if self.active else "not folded"
        return (
            f"{state}: {self.reason}. "
            f"{prompts.plural(self.tools_before, 'tool')}, {self.tokens_before:,} tokens -> "
            f"{prompts.plural(self.tools_after, 'tool')}, {self.tokens_after:,} tokens"
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

    hidden: tuple[str, ...]
    """The names of the tools that the model does not see in full."""

    _assembly: _Assembly = field(repr=False, compare=False)

    @property
    def catalog(self) -> Catalog:
        """Every tool of the scope, folded or not."""
        return self.bridge.catalog

    def resolve(
        self,
        name: str,
        arguments: Json = None,
        *,
        session: Session | None = None,
        absent: Sequence[AbsentSource] = (),
    ) -> Answer | Invocation:
        """Return what a model's call comes to: an answer for it, or a call for the host.

        Args:
            name: The tool name that the model called.
            arguments: Its arguments, as an object or as JSON text.
            session: The conversation so far; by default, that of the fold. A host that
                resolves several calls of one turn passes on the session of the last.
            absent: The sources that are not there now and of which the caller may know: an
                answer that misses their tools names them.
        """
        session = self.session if session is None else session
        return self.bridge.resolve(name, arguments, session, absent=absent)

    def may_block(self, name: str, arguments: Json = None) -> bool:
        """Whether resolving a call may take long.

        A host with an event loop resolves such a call in a thread: the first search of a
        catalog builds its index, a reranker asks an endpoint, for a name that nothing has
        all others are compared, and the first check of a large schema compiles it. A call
        by a tool's name and a search of an index that is there are done at once.

        Args:
            name: The tool name that the model called.
            arguments: Its arguments, as an object or as JSON text.
        """
        return self.bridge.may_block(name, arguments)

    def for_session(self, session: Session) -> Folded:
        """Return the same tools as another moment of the conversation sees them.

        Nothing is read, judged or counted again but the list that goes out, and not even
        that where the strategy shows every conversation the same.

        Args:
            session: The conversation so far.
        """
        if session == self.session:
            return self
        strategy = self.bridge.strategy
        if strategy is None or not strategy.reveals or session.revealed == self.session.revealed:
            return replace(self, session=session)
        return self._assembly.shown(session)


def fold(
    tools: Iterable[object] | Catalog,
    *,
    context_length: int | None = None,
    core: Iterable[str] = (),
    settings: Settings | None = None,
    scope: Scope = EVERYTHING,
    configured: Iterable[str] = (),
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
        configured: The names of all sources that there are for anybody, of those too that have
            no tool in the list: where that is one, a tool may be called by its bare name.
        session: The conversation so far.
        model: The model's name: its window is looked up where `context_length` is not given.
        shape: The wire shape to write; by default the one in which the tools came.
        ranker: How to rank, in place of the settings' choice.
        count: Counts the tokens of a text, in place of characters over four.

    Raises:
        InvalidToolError: An entry is not a tool.
        NameClashError: Two tools without a source have one name, or one of them has the name
            of a bridge tool where something is folded.
        ConfigError: The settings cannot be used.
    """
    settings = _checked_settings(settings)
    _check_arguments(context_length, scope, shape)
    if core:
        settings = replace(settings, core=(*settings.core, *_names(core)))
    session = session or Session()
    context_length = context_length or context_window(model)
    lenient = settings.enabled == "off"
    entries, sources = intake(tools, settings, scope, shape, lenient=lenient)
    sources |= tools.configured if isinstance(tools, Catalog) else frozenset()
    sources |= frozenset(configured)
    out = shape or default_shape(entries)
    came = _tools_of(entries)
    bridge_names = prompts.bridge_names(settings.bridge_prefix)
    # A list with a bridge in it is folded already: that bridge is its own host's to answer.
    is_folded = prompts.holds_bridge(came, bridge_names)
    if scope.holds_everything:
        say_unmatched(came, settings)
    costs, tokens_before = tool_costs(entries, out, count), list_tokens(entries, out, count)
    served_as = settled(came, lenient=lenient)
    served = renamed_entries(entries, served_as)
    offered = _tools_of(served) if served_as else came
    verdict = judge(
        offered,
        costs,
        settings,
        context_length,
        is_folded=is_folded,
        whole=tokens_before,
    )
    if verdict.folded and not {tool.wire_name for tool in came}.isdisjoint(bridge_names.all):
        served_as = settled(came, bridge_names.all)
        served = renamed_entries(entries, served_as)
        offered = _tools_of(served)
        verdict = judge(offered, costs, settings, context_length, whole=tokens_before)

    catalog = _catalog(offered, sources, lenient=lenient)
    strategy = strategy_of(settings)
    assembly = _Assembly(
        entries=served if verdict.folded else entries,
        shape=out,
        verdict=verdict,
        context_length=context_length,
        tokens_before=tokens_before,
        tools_before=len(came),
        renamed=tuple(
            Renamed(came[i].source or "", came[i].name, name) for i, name in served_as.items()
        ),
        bridge=Bridge(
            catalog,
            _folded(catalog, verdict.folded),
            settings,
            strategy if verdict.folded else None,
            ranker or chosen_ranker(settings, strategy.ranker),
            count,
            {name: came[i] for i, name in served_as.items()},
        ),
    )
    folded = assembly.shown(session)
    if folded.active:
        in_tokens = strategy.gate == "tokens"
        _log.info(
            "folding is active: %d kept, %d deferred (~%d tokens, threshold ~%d%s)",
            folded.report.kept,
            folded.report.deferred,
            folded.report.deferrable_tokens,
            folded.report.threshold_tokens if in_tokens else settings.threshold,
            "" if in_tokens else " tools",
        )
    return folded


@dataclass(frozen=True, slots=True)
class _Assembly:
    """All of a fold that does not depend on the conversation."""

    entries: Sequence[Entry]
    shape: Shape
    verdict: GateVerdict
    context_length: int | None
    tokens_before: int
    tools_before: int
    renamed: tuple[Renamed, ...]
    bridge: Bridge

    def shown(self, session: Session) -> Folded:
        """Return the fold as a conversation sees it."""
        bridge, verdict = self.bridge, self.verdict
        change = _NO_CHANGE
        if bridge.strategy is not None:
            change = bridge.strategy.change(
                bridge.folded, bridge.catalog, session, bridge.settings, bridge.count
            )
        active = bridge.strategy is not None
        written = assemble(self.entries, self.shape, change.records, change.added, change.revealed)
        entered = len(change.added) + len(change.revealed)
        report = Report(
            active=active,
            strategy=bridge.settings.strategy,
            reason=verdict.reason,
            tools_before=self.tools_before,
            tools_after=self.tools_before - change.left + entered,
            kept=self.tools_before - len(change.hidden),
            deferred=len(change.hidden),
            tokens_before=self.tokens_before,
            tokens_after=bridge.count(compact(written)) if active else self.tokens_before,
            deferrable_tokens=verdict.deferrable_tokens,
            threshold_tokens=verdict.threshold_tokens,
            context_length=self.context_length,
            renamed=self.renamed,
        )
        return Folded(
            tools=written,
            active=active,
            report=report,
            guidance=change.guidance or None,
            session=session,
            bridge=bridge,
            hidden=tuple(change.hidden),
            _assembly=self,
        )


_NO_CHANGE = ListChange({}, (), "", (), 0)


def _checked_settings(settings: object) -> Settings:
    if settings is None:
        return Settings()
    if not isinstance(settings, Settings):
        raise ConfigError(
            f"`settings` is a {type(settings).__name__}",
            hint="write `Settings(threshold_pct=5)`, or read a file with `load_settings`",
        )
    return settings


def _check_arguments(context_length: object, scope: object, shape: object) -> None:
    if context_length is not None and not _is_count(context_length):
        raise ConfigError(
            f"`context_length` is {context_length!r}", hint="write a number of tokens, as 128_000"
        )
    if not isinstance(scope, Scope):
        raise ConfigError(f"`scope` is {scope!r}", hint='write `Scope(("github__*",))`')
    shapes = list(get_args(Shape))
    if shape is not None and shape not in shapes:
        hint = suggestion(str(shape), shapes, what="shapes")
        raise ConfigError(f"`shape` is {shape!r}", hint=hint)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _names(names: Iterable[str]) -> tuple[str, ...]:
    # A string is a sequence of one-letter names, and a set has no order of its own.
    if isinstance(names, str):
        raise ConfigError(f"`core` is the text {names!r}, not a list", hint=f"write [{names!r}]")
    return tuple(sorted(names) if isinstance(names, set | frozenset) else names)


def _tools_of(entries: Sequence[Entry]) -> tuple[Tool, ...]:
    return tuple(tool for entry in entries for tool in entry.tools)


def _catalog(tools: Sequence[Tool], sources: Iterable[str], *, lenient: bool) -> Catalog:
    unique = {tool.wire_name: tool for tool in tools}.values() if lenient else tools
    return Catalog(unique, configured=sources)


def _folded(catalog: Catalog, names: frozenset[str]) -> Catalog:
    """Return the part of a catalog that is folded; often, all of it."""
    if len(names) == len(catalog):
        return catalog
    return Catalog((tool for tool in catalog if tool.name in names), configured=catalog.configured)
