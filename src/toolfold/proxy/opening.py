"""The beginning of an exchange: what a client's request is, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from toolfold._json_values import sendable
from toolfold.dispatch.learning import Learning
from toolfold.providers import Provider
from toolfold.proxy.dialects.anthropic_messages import MessagesDialect
from toolfold.proxy.dialects.dialect import Dialect
from toolfold.proxy.dialects.openai_chat import ChatDialect
from toolfold.proxy.dialects.openai_responses import ResponsesDialect
from toolfold.proxy.exchange import ProxyDialect, Refused, Untouched
from toolfold.proxy.folding import FoldedTools, Folding, ToolsRefusedError
from toolfold.proxy.history import History
from toolfold.proxy.json_spans import Edit, UnreadableError
from toolfold.proxy.lessons import Lessons
from toolfold.proxy.loop import ROUNDS_AT_MOST, FoldedExchange
from toolfold.proxy.lowering import flat_names, has_own_search, spread, unseen_tools
from toolfold.proxy.offered import Lowered, name_of, without_name
from toolfold.proxy.prefetch import Notes, notes_for, take_no_notes, takes_notes
from toolfold.proxy.recovery import Recovery
from toolfold.proxy.request import ProxiedRequest
from toolfold.proxy.threads import (
    begins_thread,
    continues_thread,
    sends_whole_instead,
    thread_refusal,
)
from toolfold.scope import EVERYTHING, Scope
from toolfold.settings import Settings
from toolfold.store.store import Entries

__all__ = ["DIALECTS", "open_exchange"]

DIALECTS: Mapping[ProxyDialect, Dialect] = MappingProxyType(
    {
        "openai-chat": ChatDialect(),
        "openai-responses": ResponsesDialect(),
        "anthropic-messages": MessagesDialect(),
    }
)
"""How each API is spoken."""

_ABOUT_TOOLS = frozenset({"tools", "tool_choice", "parallel_tool_calls"})
_BETAS = ("advanced-tool-use", "tool-search-tool", "inline-tools")
"""What servers that only claim to be Anthropic's stumble over."""


def open_exchange(
    dialect: ProxyDialect,
    body: bytes,
    headers: Mapping[str, str],
    *,
    settings: Settings,
    store: Entries,
    scope: Scope = EVERYTHING,
    host: str = "",
    owner: str = "",
    recover: bool = False,
    searches: bool | None = None,
    context_length: int | None = None,
    rounds_at_most: int = ROUNDS_AT_MOST,
    learning: Learning | None = None,
) -> FoldedExchange | Untouched | Refused:
    """Return what becomes of a client's request for an answer.

    Args:
        dialect: What the client and the upstream speak.
        body: The request's body, as it came.
        headers: Its headers, their names in lower case.
        settings: How to fold.
        store: What remembers a conversation between its requests.
        scope: Which of the client's tools exist for this caller.
        host: The upstream's host or address: it may be known to defer tools itself.
        owner: Names the caller where there are several; conversations of two are kept apart.
        recover: Whether a text that is a call of an offered tool is one.
        searches: Whether the upstream understands a client's own search; by default its host and
            the model tell.
        context_length: The model's window, where that is known.
        rounds_at_most: How often the model may search before its client gets an answer.
        learning: Learns what searches lead to, and knows what earlier ones led to.
    """
    spoken = DIALECTS[dialect]
    try:
        request = ProxiedRequest.of(body, spoken.items_key)
    except UnreadableError:
        return _unread(spoken, body, scope)
    opening = _Opening(
        spoken, request, body, headers, settings, store, scope, host, owner, recover,
        searches, context_length, rounds_at_most, learning,
    )  # fmt: skip
    try:
        return opening.opened()
    except ToolsRefusedError as error:
        return Refused(400, spoken.error(f"toolfold: {error}", 400))


@dataclass(frozen=True, slots=True)
class _Opening:
    """One request on its way in; the fields are `open_exchange`'s."""

    dialect: Dialect
    request: ProxiedRequest
    body: bytes
    headers: Mapping[str, str]
    settings: Settings
    store: Entries
    scope: Scope
    host: str
    owner: str
    recover: bool
    searches: bool | None
    context_length: int | None
    rounds_at_most: int
    learning: Learning | None

    def opened(self) -> FoldedExchange | Untouched | Refused:
        """Return what becomes of the request."""
        request, is_free = self.request, self.scope.holds_everything
        if not request.has_conversation:
            return self._passed("there is no conversation that can be read")
        if not is_free and (unseen := unseen_tools(request)):
            return self._passed(unseen)
        if continues_thread(request):
            return self._passed("the server holds the conversation and its tools")
        if not request.tools and not has_own_search(request):
            return Untouched(self.body, "there are no tools")
        if begins_thread(request) and is_free and not sends_whole_instead(self.headers):
            return Untouched(self.body, "the server is to hold the conversation")
        why = self.dialect.why_untouched(request)
        if why:
            return self._thread() if is_free else self._passed(why)
        understands = self._understands
        if understands and has_own_search(request):
            if is_free:
                return Untouched(self.body, "the client searches, and the upstream defers")
            understands = False  # what a scope leaves is said in plain tools
        lowered = spread(request) if understands else self.dialect.lowered(request)
        exchange = self._exchange(lowered)
        if exchange is not None and begins_thread(request):
            return Refused(400, thread_refusal())
        return Untouched(self.body, "the gate is closed") if exchange is None else exchange

    @property
    def _understands(self) -> bool:
        """Whether the upstream takes a client's own search as it is."""
        if self.searches is not None:
            return self.searches
        return self._provider is not None and self._provider.support() is not None

    @property
    def _provider(self) -> Provider | None:
        api = self.dialect.api
        return None if api is None else Provider.of(api, self.host, self.request.model)

    def _exchange(self, lowered: Lowered, *, is_native: bool = True) -> FoldedExchange | None:
        request = self.request
        history = History(self.dialect, request, self.store, self.owner, self.headers)
        before = None if self.settings.enabled == "off" else history.conversation
        if before is not None and not before.is_of(name_of(t.record) for t in lowered.tools):
            before = None  # another's, which began with the same words
        folding = Folding(
            lowered.tools,
            self.settings,
            self.scope,
            self.dialect.shape,
            self.headers,
            self.dialect.forced(request),
            self._provider,
            request.model,
            self.context_length,
            None if self.settings.enabled == "off" else before,
        )
        tools = folding.folded(is_native=is_native)
        if tools is None and not lowered.edits and not lowered.is_changed:
            return None
        if tools is None:
            tools = folding.plain()
            if tools is None:
                return None
        else:
            history.remember(tools.conversation)
        lessons = self._lessons()
        if lessons is not None:
            lessons.began(history.name, request)
            tools.memory = lessons.memory
        restored = history.restored(tools.is_folded, tools.found_form)
        spaced = [(name.namespace, name.name) for name in tools.spaced.values()]
        changed = lowered.edits or flat_names(request, spaced)
        edits = [edit for place, edit in changed if place not in restored.items]
        notes = Notes()
        if takes_notes(self.host, request.model):
            notes = notes_for(request, history, tools, (*restored.edits, *edits))
            if lessons is not None:
                lessons.noted(notes.hits)
        betas = self._betas()
        return FoldedExchange(
            self.dialect,
            request,
            # What takes items out begins where the one before them ends: notes come before it.
            (*notes.edits, *restored.edits, *edits, *self._tools_edits(tools)),
            tools,
            history,
            rounds_at_most=self.rounds_at_most,
            set_headers={"anthropic-beta": betas} if betas else {},
            drop_headers=frozenset({"anthropic-beta"} if betas == "" else ()),
            restored=restored.turns,
            recovery=self._recovery(tools, history),
            otherwise=lambda: self._exchange(self.dialect.lowered(request), is_native=False),
            lessons=lessons,
            notes=notes,
            without_notes=lambda: self._without_notes(lowered, is_native),
        )

    def _lessons(self) -> Lessons | None:
        if self.learning is None:
            return None
        tells_errors = self.dialect.name == "anthropic-messages"
        return Lessons(self.learning, self.owner, tells_errors=tells_errors)

    def _without_notes(self, lowered: Lowered, is_native: bool) -> FoldedExchange | None:
        take_no_notes(self.host, self.request.model)
        return self._exchange(lowered, is_native=is_native)

    def _recovery(self, tools: FoldedTools, history: History) -> Recovery | None:
        if not self.recover:
            return None
        items = [item.value for item in self.request.items] or [self.request.document.get("input")]
        # What a tool says of itself comes to the model as a result of its search.
        told = [without_name(tool.value) for tool in self.request.tools]
        return Recovery(tools.is_known, [*items, *told], history.digest)

    def _tools_edits(self, tools: FoldedTools) -> list[Edit]:
        if not tools.tools:
            # An empty list is an error to many, and so is a choice of nothing.
            return self.request.document.removal(_ABOUT_TOOLS)
        if "tools" in self.request.document.members:
            return [self.request.tools_edit(tools.tools)]
        # Tools that came in with the conversation alone stand before it.
        first = min(member.start for member in self.request.document.members.values())
        at = self.request.text.index("{") + 1
        assert at < first
        return [Edit(at, at, f'"tools":[{",".join(tools.tools)}],')]

    def _betas(self) -> str | None:
        """Return the betas that are named without those about tools; None where that is all."""
        given = self.headers.get("anthropic-beta")
        if given is None or self.dialect.name != "anthropic-messages":
            return None
        kept = [beta for beta in given.split(",") if not beta.strip().startswith(_BETAS)]
        left = ",".join(kept)
        return None if left == given else left

    def _thread(self) -> Untouched:
        """Return a request about a conversation that the server holds, by the server's own ids."""
        told = self.request.document.get("previous_response_id")
        if not isinstance(told, str):
            return Untouched(self.body, self.dialect.why_untouched(self.request))
        history = History(self.dialect, self.request, self.store, self.owner, self.headers)
        edits = list(history.missing_answers())
        known = history.known_as(told)
        if known != told:
            member = self.request.document.members["previous_response_id"]
            edits.append(Edit(member.start, member.end, sendable(known).decode()))
        body = self.request.written(edits) if edits else self.body
        return Untouched(body, "the server holds the conversation")

    def _passed(self, why: str) -> Untouched | Refused:
        """Return a request that cannot be read: a scope must know what is in it."""
        if self.scope.holds_everything:
            return Untouched(self.body, why)
        message = f"toolfold: with this token, the request cannot be served: {why}"
        return Refused(400, self.dialect.error(message, 400))


def _unread(dialect: Dialect, body: bytes, scope: Scope) -> Untouched | Refused:
    """Return what becomes of a body that cannot be read: nobody knows what tools are in it."""
    if scope.holds_everything:
        return Untouched(body, "it is not a JSON object that can be read for certain")
    message = "toolfold: the request is not a JSON object that can be read"
    return Refused(400, dialect.error(message, 400))
