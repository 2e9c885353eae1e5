"""The inner loop: searches are answered here, real calls go to the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from toolfold import prompts
from toolfold._json_values import parse, sendable
from toolfold.answer import Answer
from toolfold.arguments import read_arguments
from toolfold.providers import refuses_native
from toolfold.proxy.dialects.dialect import Dialect
from toolfold.proxy.dialects.events import BROKE_OFF
from toolfold.proxy.exchange import Again, ExchangeReport, Finished
from toolfold.proxy.folding import FoldedTools
from toolfold.proxy.history import History
from toolfold.proxy.json_spans import Edit
from toolfold.proxy.lessons import Lessons
from toolfold.proxy.recovery import Recovery
from toolfold.proxy.request import ProxiedRequest
from toolfold.proxy.turns import AnsweredCall, HandedCall, KeptTurn, ModelCall, RoundTurn
from toolfold.runtime._loose import arguments_text
from toolfold.session import Session
from toolfold.tool import Json

__all__ = ["ROUNDS_AT_MOST", "FoldedExchange"]

ROUNDS_AT_MOST = 5
"""How often a model may search before its client gets an answer."""


class FoldedExchange:
    """One request of a client, folded: see `Exchange`.

    Args:
        dialect: How the request is written.
        request: The request.
        edits: What is changed of it.
        tools: Its tools, folded.
        history: What the conversation's later requests are told by.
        rounds_at_most: How often the model may search.
        drop_headers: Request headers that do not go up.
        set_headers: Request headers that go up with another value.
        restored: How many turns of the history were put back.
        recovery: What reads calls that the model writes as text, where that is to be.
        otherwise: Opens the exchange for an upstream that does not defer, after all.
        lessons: Told what is searched for and called.
    """

    def __init__(
        self,
        dialect: Dialect,
        request: ProxiedRequest,
        edits: Sequence[Edit],
        tools: FoldedTools,
        history: History,
        *,
        rounds_at_most: int = ROUNDS_AT_MOST,
        set_headers: Mapping[str, str] = MappingProxyType({}),
        drop_headers: frozenset[str] = frozenset(),
        restored: int = 0,
        recovery: Recovery | None = None,
        otherwise: Callable[[], FoldedExchange | None] = lambda: None,
        lessons: Lessons | None = None,
    ) -> None:
        self._lessons = lessons
        self._dialect = dialect
        self._request = request
        self._edits = tuple(edits)
        self._tools = tools
        self._history = history
        self._otherwise = otherwise
        self._rounds_at_most = rounds_at_most
        self._hidden: list[str] = []
        self._said: list[str] = []
        self.drop_headers = drop_headers
        self.set_headers = set_headers
        self.is_streamed = request.is_streamed
        self.body = request.written(edits)
        self._writer = partial(dialect.writer, request, is_open=tools.is_open, recovery=recovery)
        self._answer = self._writer(streamed=self.is_streamed)
        self._is_begun = False
        told = tools.folded.report
        self.report = ExchangeReport(
            tools_before=told.tools_before,
            tools_after=told.tools_after,
            tokens_before=told.tokens_before,
            tokens_after=told.tokens_after,
            strategy=told.strategy if told.active else "",
            restored=restored,
        )

    def receive(self, data: bytes) -> bytes:
        """Take a piece of a streamed response; return what the client gets of it now."""
        self._is_begun = True
        return self._answer.receive(data)

    def end(self, body: bytes = b"") -> Again | Finished:
        """Take the end of a response, or a whole one that is not streamed.

        An upstream may answer in one piece though a stream was asked for: then `body` is that,
        and so is what goes back.
        """
        self.report.rounds += 1
        if body and self.is_streamed and not self._is_begun:
            self.is_streamed = False
            self._answer = self._writer(streamed=False)
        turn = self._answer.read(body)
        if self._answer.is_cut_off:
            return Finished(self._answer.broken(BROKE_OFF), error=BROKE_OFF)
        if turn is None:
            return self._finished(self._answer.as_it_came())
        self.report.usage += turn.usage
        self._said.append(turn.text)
        handed: list[HandedCall] = []
        answered: list[AnsweredCall] = []
        for call in turn.calls:
            one = self._resolved(call, is_last=turn.is_cut and call is turn.calls[-1])
            if isinstance(one, HandedCall):
                handed.append(one)
            elif one is not None:
                answered.append(one)
        self.report.handed += len(handed)
        self.report.recovered += sum(call.is_text for call in turn.calls)
        if answered and not handed and not turn.is_cut:
            return self._again(turn, answered)
        is_same = len(handed) == len(turn.calls) and all(one.is_same for one in handed)
        is_same = is_same and not any(call.is_text for call in turn.calls)
        is_ours = any(self._tools.is_folded(one.call.name) for one in handed)
        if self._hidden or is_ours or not is_same:
            self._keep(turn, handed, answered)
        if not self._hidden and is_same:
            return self._finished(self._answer.as_it_came())
        return self._finished(self._answer.finished(handed))

    def keep_alive(self) -> bytes:
        """Return what says to the client that work goes on, between two events."""
        return self._answer.keep_alive()

    def broken(self, message: str, status: int = 502, body: bytes = b"") -> bytes:
        """Return the error, in the client's dialect, of an upstream that broke off."""
        return self._answer.broken(message, status, body)

    def refused(self, status: int, body: bytes) -> Again | None:
        """Take an upstream's error: it is the client's, but for one about deferred tools."""
        if not self._tools.folded.is_native or not refuses_native(status, body) or self._said:
            return None
        other = self._otherwise()
        if other is None:
            return None
        told = Session(refused=self._tools.folded.refused().refused)
        other._tools.session = told
        self._history.remember(replace(other._tools.conversation, session=told))
        report = replace(other.report, rounds=self.report.rounds, usage=self.report.usage)
        self._tools, self._edits, self.report = other._tools, other._edits, report
        self._answer, self._hidden = other._answer, []
        return Again(other.body)

    def _resolved(self, call: ModelCall, *, is_last: bool) -> HandedCall | AnsweredCall | None:
        """Return what a call comes to; None for one that was cut off."""
        if call.is_out or call.name in self._tools.aside:
            return HandedCall(call, call.name, call.arguments, is_same=True)
        if is_last and arguments_text(call.arguments) is None:
            return None
        if self._tools.is_open(call.name):
            return HandedCall(call, call.name, call.arguments, is_same=True)
        resolved = self._tools.resolve(call.name, call.arguments)
        if isinstance(resolved, Answer):
            self.report.searches += 1
            self.report.mistakes += resolved.is_error
            role = self._tools.folded.bridge.role(call.name)
            self.report.answers.append((call.name, role, call.arguments, resolved))
            if self._lessons is not None:
                self._lessons.answered(role, _query(call.arguments), resolved)
            return AnsweredCall(call, resolved)
        if self._lessons is not None:
            self._lessons.handed(resolved.tool, call.id)
        name, namespace = self._tools.client_name(resolved.tool)
        arguments = sendable(dict(resolved.arguments)).decode()
        is_same = _same(arguments, call.arguments)
        return HandedCall(
            call,
            name,
            call.arguments if is_same else arguments,
            is_same and name == call.name and namespace == call.namespace,
            namespace,
        )

    def _again(self, turn: RoundTurn, answered: Sequence[AnsweredCall]) -> Again | Finished:
        if self.report.rounds > self._rounds_at_most:
            note = "" if any(self._said) else prompts.SEARCHED_ENOUGH
            return self._finished(self._answer.finished((), note))
        answers = self._dialect.answers(answered, self._tools.found_form)
        self._hidden += (*turn.items, *self._dialect.results(answers))
        self._answer.begin()
        return Again(self._request.written(self._edits, self._hidden))

    def _keep(
        self, turn: RoundTurn, handed: Sequence[HandedCall], answered: Sequence[AnsweredCall]
    ) -> None:
        kept = KeptTurn(
            calls=tuple((one.call.id, one.name, one.arguments) for one in handed),
            before=tuple(self._hidden),
            turn=tuple(turn.items),
            answers=self._dialect.answers(answered, self._tools.found_form),
            form=self._tools.found_form,
        )
        self._history.keep(kept, "".join(self._said))

    def _finished(self, tail: bytes) -> Finished:
        if self._tools.folded.is_native:
            self._history.remember(self._tools.conversation)
        if self._hidden:
            self._history.alias(*self._answer.alias)
        return Finished(tail, self.report.headers())


def _query(arguments: Json) -> str:
    """Return what a search asks for, where that is one text."""
    read = read_arguments(arguments)
    query = "" if isinstance(read, str) else read.get("query")
    return query if isinstance(query, str) else ""


def _same(ours: str, theirs: str) -> bool:
    """Whether two texts are the same arguments."""
    try:
        return parse(ours) == parse(theirs)
    except (ValueError, RecursionError):
        return False
