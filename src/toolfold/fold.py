"""Fold a list of tools into what the model sees.

`fold` is pure: tools, settings, scope and session in, a `Folded` out. Below the gate the
tools go out as they came in; above it the deferrable ones leave, or lose their
parameters, and the bridge's tools come in. The same input gives the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from toolfold import prompts
from toolfold.answer import Answer, Invocation
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog, owner
from toolfold.costs import list_tokens, tool_costs
from toolfold.errors import ConfigError, NameClashError
from toolfold.gate import judge
from toolfold.intake import intake
from toolfold.json_values import compact
from toolfold.memo import Memo
from toolfold.render import listing_text
from toolfold.scope import EVERYTHING, Scope
from toolfold.search import Ranker, chosen_ranker
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.tokens import TokenCounter, context_window, estimate
from toolfold.tool import Json, Shape, Tool
from toolfold.wire.assemble import assemble, default_shape

__all__ = ["Folded", "Report", "fold"]

_log = logging.getLogger(__name__)
_SEARCH_TOOLS: Memo[tuple[str, str, str, int, str], Tool] = Memo(64)


@dataclass(frozen=True, slots=True)
class Report:
    """What folding did: counts, tokens, and why."""

    active: bool
    """Whether anything was folded."""

    strategy: Literal["bridge", "stub"]
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
        settings = replace(settings, core=(*settings.core, *_names(core)))
    session = session or Session()
    context_length = context_length or context_window(model)
    if context_length is not None and context_length < 0:
        raise ConfigError(f"`context_length` is {context_length}", hint="write a number of tokens")
    lenient = settings.enabled == "off"
    entries = intake(tools, settings.aliases, scope, shape, lenient=lenient)
    out = shape or default_shape(entries)
    every = tuple(tool for entry in entries for tool in entry.tools)
    # A list with a bridge in it is folded already: that bridge is its own host's to answer.
    is_folded = any(t.name in prompts.BRIDGE_NAMES and prompts.is_own(t) for t in every)
    if not lenient and not is_folded:
        _refuse_bridge_names(every)
    costs = tool_costs(entries, out, count)
    verdict = judge(every, costs, settings, context_length, is_folded=is_folded)

    strategy = settings.strategy if verdict.folded else None
    catalog = _catalog(every, lenient=lenient)
    folded = _folded(catalog, verdict.folded)
    change = _NO_CHANGE
    if strategy == "bridge":
        change = _to_bridge(folded, catalog, settings, count)
    elif strategy == "stub":
        change = _to_stubs(folded, session, prompts.TEXTS[settings.bridge_texts])
    written = assemble(entries, out, change.records, change.added)
    before = list_tokens(entries, out, count)
    report = Report(
        active=strategy is not None,
        strategy=settings.strategy,
        reason=verdict.reason,
        tools_before=len(every),
        tools_after=len(every) - change.left + len(change.added),
        kept=len(every) - change.hidden,
        deferred=change.hidden,
        tokens_before=before,
        tokens_after=count(compact(written)) if strategy else before,
        deferrable_tokens=verdict.deferrable_tokens,
        threshold_tokens=verdict.threshold_tokens,
        context_length=context_length,
    )
    if strategy:
        in_tokens = strategy == "bridge"
        _log.info(
            "folding is active: %d kept, %d deferred (~%d tokens, threshold ~%d%s)",
            report.kept,
            report.deferred,
            report.deferrable_tokens,
            report.threshold_tokens if in_tokens else settings.threshold,
            "" if in_tokens else " tools",
        )
    return Folded(
        tools=written,
        active=strategy is not None,
        report=report,
        guidance=change.guidance,
        session=session,
        bridge=Bridge(
            catalog, folded, settings, strategy, ranker or chosen_ranker(settings), count
        ),
    )


class _Change(NamedTuple):
    """What happens to the list of tools."""

    records: Mapping[str, Mapping[str, Json] | None]
    """By name: the parameters that a tool is shown with, or None where it leaves."""
    added: Sequence[Tool]
    """What comes in."""
    hidden: int
    """How many tools are not shown in full."""
    left: int
    """How many are not shown at all."""
    guidance: str | None
    """What to tell the model about it."""


_NO_CHANGE = _Change({}, (), 0, 0, None)


def _to_bridge(
    folded: Catalog, catalog: Catalog, settings: Settings, count: TokenCounter
) -> _Change:
    """Let the folded tools leave, and the bridge's come in."""
    texts = prompts.TEXTS[settings.bridge_texts]
    search = _search_tool(folded, catalog, settings, count)
    added = (search, prompts.describe_tool(texts), prompts.call_tool(texts))
    records = dict.fromkeys(folded.names)
    return _Change(records, added, len(folded), len(folded), texts.guidance)


def _to_stubs(folded: Catalog, session: Session, texts: prompts.Texts) -> _Change:
    """Let the folded tools lose their parameters, but for those that are revealed."""
    hidden = [name for name in folded.names if name not in session.revealed]
    records = dict.fromkeys(hidden, texts.stub_parameters)
    added = (prompts.stub_search_tool(len(folded), texts),)
    return _Change(records, added, len(hidden), 0, texts.stub_guidance)


def _names(names: Iterable[str]) -> tuple[str, ...]:
    # A string is a sequence of one-letter names, and a set has no order of its own.
    if isinstance(names, str):
        raise ConfigError(f"`core` is the text {names!r}, not a list", hint=f"write [{names!r}]")
    return tuple(sorted(names) if isinstance(names, set | frozenset) else names)


def _catalog(tools: Sequence[Tool], *, lenient: bool) -> Catalog:
    return Catalog({tool.wire_name: tool for tool in tools}.values() if lenient else tools)


def _folded(catalog: Catalog, names: frozenset[str]) -> Catalog:
    """Return the part of a catalog that is folded; often, all of it."""
    if len(names) == len(catalog):
        return catalog
    return Catalog(tool for tool in catalog if tool.name in names)


def _refuse_bridge_names(tools: Iterable[Tool]) -> None:
    for tool in tools:
        if tool.name in prompts.BRIDGE_NAMES:
            raise NameClashError(
                tool.name,
                (owner(tool), "toolfold's bridge"),
                hint="rename the tool: the bridge needs this name",
            )


def _search_tool(
    folded: Catalog, catalog: Catalog, settings: Settings, count: TokenCounter
) -> Tool:
    def made() -> Tool:
        budget = settings.listing_max_tokens
        listing = listing_text(folded, catalog, settings.listing, budget, count)
        return prompts.search_tool(len(folded), listing, prompts.TEXTS[settings.bridge_texts])

    if count is not estimate:
        return made()
    kind = (settings.listing, settings.listing_max_tokens, settings.bridge_texts)
    return _SEARCH_TOOLS.get_or((folded.fingerprint, catalog.fingerprint, *kind), made)
