"""What a fold gives: the list for the model, the report, and what answers the model's calls.

A `Folded` is a value. What of it does not depend on the conversation is kept in its assembly,
so that another moment of the conversation only writes the list anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from toolfold import prompts
from toolfold._clashes import Renamed
from toolfold._json_values import compact
from toolfold.absent import AbsentSource
from toolfold.answer import Answer, Invocation
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.gate import GateVerdict
from toolfold.search.memory import SearchMemory
from toolfold.session import Session
from toolfold.settings.model import StrategyName
from toolfold.strategy import STRATEGIES, FoundForm, ListChange
from toolfold.tool import Json, Shape
from toolfold.wire import Entry
from toolfold.wire.assemble import assemble

if TYPE_CHECKING:
    from toolfold.providers import Provider

__all__ = ["Assembly", "Folded", "Report"]


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

    breaks: int = 0
    """How often the array of tools has changed in this conversation, where `api` is given: each
    time, a provider's cache begins anew."""

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

    headers: Mapping[str, str]
    """What else belongs into the request: headers that the provider wants with these tools."""

    _assembly: Assembly = field(repr=False, compare=False)

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
        memory: SearchMemory | None = None,
    ) -> Answer | Invocation:
        """Return what a model's call comes to: an answer for it, or a call for the host.

        Args:
            name: The tool name that the model called.
            arguments: Its arguments, as an object or as JSON text.
            session: The conversation so far; by default, that of the fold. A host that
                resolves several calls of one turn passes on the session of the last.
            absent: The sources that are not there now and of which the caller may know: an
                answer that misses their tools names them.
            memory: What earlier searches led to, as this caller may know it; by default, what
                `fold` was given.
        """
        session = self.session if session is None else session
        provider = self.provider
        if provider is None:
            return self.bridge.resolve(name, arguments, session, absent=absent, memory=memory)
        from toolfold._deferral import remembered, with_array

        session = with_array(session, self.session)
        resolved = self.bridge.resolve(name, arguments, session, absent=absent, memory=memory)
        return remembered(resolved, self.bridge, provider)

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
        strategy, assembly = self.bridge.strategy, self._assembly
        if assembly.provider is not None:
            if session.refused != self.session.refused:
                return assembly.anew(session)  # another strategy may be due
            if session.sent != self.session.sent:
                return assembly.shown(session)
        if strategy is None or not strategy.reveals or session.revealed == self.session.revealed:
            return replace(self, session=session)
        return assembly.shown(session)

    # ---- for hosts that speak to a provider which defers tools

    @property
    def provider(self) -> Provider | None:
        """Whom the request goes to, where `api` was given."""
        return self._assembly.provider

    @property
    def is_native(self) -> bool:
        """Whether the provider itself defers tools here.

        Where it answers with an error that `toolfold.providers.refuses_native` knows, go on with
        `folded.for_session(folded.refused())`.
        """
        return self.bridge.strategy is not None and self.report.strategy not in STRATEGIES

    @property
    def found_form(self) -> FoundForm:
        """How what a search found is said to this model.

        `text`: `answer.text`. `tool_reference`: `answer.result_content()` is the content of the
        `tool_result`. `tool_search_output`: `answer.search_output(call_id)` are the items that
        answer a `tool_search_call`. `tool_addition`: `answer.additions()`.
        """
        return "text" if self.bridge.strategy is None else self.bridge.strategy.found_form

    def refused(self) -> Session:
        """Return the session that remembers that this provider refused deferred tools."""
        provider = self.provider
        return self.session if provider is None else self.session.refuse(provider.key)

    def replayed(self, text: str, found: Iterable[str], note: str = "") -> Answer:
        """Return an earlier answer to a search, as this request has to say it.

        A transcript keeps what a search said and which tools it found. Whoever the model is by
        now, the answer that comes back is rendered by `found_form` as a new one is; what has no
        definition any more is left out.

        Args:
            text: What the search said then.
            found: The names of the tools in its `Answer.found`.
            note: Its `Answer.note`, and what the host has added to the text since.
        """
        from toolfold._deferral import replayed

        return replayed(text, found, note, self.bridge, self.session)

    def namespace(self, name: str) -> str | None:
        """Return the `namespace` that a replayed call of a tool needs on OpenAI's API, if any.

        Args:
            name: The name that the model called.
        """
        provider = self.provider
        if provider is None:
            return None
        from toolfold._deferral import namespace

        return namespace(name, self.bridge, self.session, provider)


@dataclass(frozen=True, slots=True)
class Assembly:
    """All of a fold that does not depend on the conversation."""

    entries: Sequence[Entry]
    shape: Shape
    strategy: StrategyName
    provider: Provider | None
    anew: Callable[[Session], Folded]
    """Folds the same tools for a session with which another strategy may be due."""
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
        written = assemble(
            self.entries,
            self.shape,
            change.records,
            change.added,
            change.revealed,
            change.provided,
        )
        entered = len(change.added) + len(change.revealed) + len(change.provided)
        seen, guidance, hidden = written, change.guidance, change.hidden
        if self.provider is not None:
            from toolfold._deferral import kept_array

            kept = kept_array(written, change, session, bridge, self.provider, self.strategy)
            entered += len(kept.seen) - len(written)
            written, seen, session, guidance, hidden = kept
        report = Report(
            active=active,
            strategy=self.strategy,
            reason=verdict.reason,
            tools_before=self.tools_before,
            tools_after=self.tools_before - change.left + entered,
            kept=self.tools_before - len(hidden),
            deferred=len(hidden),
            tokens_before=self.tokens_before,
            tokens_after=bridge.count(compact(seen)) if active else self.tokens_before,
            deferrable_tokens=verdict.deferrable_tokens,
            threshold_tokens=verdict.threshold_tokens,
            context_length=self.context_length,
            renamed=self.renamed,
            breaks=session.breaks,
        )
        return Folded(
            tools=written,
            active=active,
            report=report,
            guidance=guidance or None,
            session=session,
            bridge=bridge,
            hidden=tuple(hidden),
            headers={} if bridge.strategy is None else bridge.strategy.headers,
            _assembly=self,
        )


_NO_CHANGE = ListChange({}, (), "", (), 0)
