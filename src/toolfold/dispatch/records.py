"""What happens to calls, searches and servers, as frozen values, and who is told of it.

There is one record for each call, each search, each change of a server, each change of what is
folded and each request that the proxy passes to a model; the activity feed, the audit log, the
metrics, the spans and the status screen all read these and nothing else. An observer can
neither change a record nor break a call: `Observers` logs what one raises and goes on to the next.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from toolfold.folded import Report
from toolfold.sources.calls import Output, Via
from toolfold.sources.mcp.server_status import ServerStatus
from toolfold.tool import Json, Tool

__all__ = [
    "OUTCOMES",
    "CallRecord",
    "FoldRecord",
    "Observer",
    "Observers",
    "Outcome",
    "RequestOutcome",
    "RequestRecord",
    "SearchRecord",
    "Silent",
    "Via",
    "session_digest",
]

_log = logging.getLogger(__name__)

Outcome = Literal["ok", "tool_error", "refused", "failed", "cancelled", "timeout"]
"""How a call ended: answered, answered with `isError`, not let through, not answered by the
server, given up by the client, given up by the clock."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


RequestOutcome = Literal["folded", "untouched", "refused", "failed", "cancelled"]
"""What became of a request to a model: its tools were folded, it passed as it came, it was not
passed on, the upstream did not answer it to the end, the client left."""


def session_digest(session: str | None) -> str | None:
    """Return what a session is called where it is written down: its id is a key."""
    if session is None:
        return None
    return hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a tool, while it runs and when it is over; or a resource or prompt asked for."""

    at: float
    """When it began, in seconds since 1970."""

    principal: str
    """The name of the caller."""

    session: str | None
    """The session it came in, where the protocol has sessions."""

    server: str
    """The server that was asked."""

    tool: str
    """The tool's name in the catalog."""

    via: Via | Literal["resource", "prompt"]
    """How it came; `resource` and `prompt` are no calls of tools: their names stand in `tool`."""

    outcome: Outcome | None
    """How it ended; None while it runs."""

    seconds: float
    """How long it took, as the caller saw it."""

    request_size: int = 0
    """The length of the arguments in JSON."""

    result_size: int = 0
    """The length of the result in JSON."""

    arguments: Mapping[str, Json] | None = field(default=None, repr=False)
    """The arguments as they came. Whoever writes them down redacts them first."""

    error: str | None = None
    """What went wrong, in one line."""

    call_id: str = ""
    """The model's id for it."""

    position: int = 0
    """Which call of the turn it is, from 0."""

    toolset: str | None = None
    started: bool = True
    """Whether it began: nothing refused it, and nobody gave it up before."""

    output: Output | None = field(default=None, repr=False)
    """What came of it, before anything was cut; None while it runs."""

    digest: str = field(default="", repr=False)
    """The tool's digest: a tool that changed has another."""

    cause: BaseException | None = field(default=None, repr=False)
    """What was raised, where something was, for whoever says it in words of their own."""

    tenant: str = "default"
    """Whose it is, among those who share a deployment."""


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """One search of the catalog; or another call that was answered without a tool."""

    at: float
    """When it began, in seconds since 1970."""

    principal: str
    """The name of the caller."""

    session: str | None
    """The session it came in, where the protocol has sessions."""

    query: str
    """What was asked for, as it came."""

    hits: int
    """How many tools the answer names."""

    seconds: float
    """How long it took."""

    name: str = "tool_search"
    """What was called."""

    role: str | None = "tool_search"
    """Which of the bridge's tools that is, whatever it is called; None where it is none."""

    meant: Tool | None = None
    """The real tool that a call was of and that was not run, where there is one for the caller."""

    found: tuple[str, ...] = ()
    """The tools that the answer names."""

    error: str | None = None
    """What was wrong with the call, in one line; None where it was answered."""

    arguments: Json = field(default=None, repr=False)
    """The arguments as they came."""

    call_id: str = ""
    """The model's id for it."""

    position: int = 0
    """Which call of the turn it is, from 0."""

    named: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The needs of a search and the tools that the answer names for each, as pairs."""

    tenant: str = "default"
    """Whose it is, among those who share a deployment."""


@dataclass(frozen=True, slots=True)
class FoldRecord:
    """What folding does for the caller who may see everything."""

    is_active: bool
    """Whether the tools are folded. Below the gate they pass as they are."""

    tools: int
    """How many tools there are behind the gateway."""

    tokens_before: int
    """What their definitions would cost in every request."""

    tokens_after: int
    """What the definitions that are shown cost."""

    reason: str = ""
    """Why, as one clause for a person."""

    @classmethod
    def of(cls, report: Report) -> FoldRecord:
        """Return the record of a fold."""
        before, after = report.tokens_before, report.tokens_after
        return cls(report.active, report.tools_before, before, after, report.reason)

    @property
    def tokens_saved(self) -> int:
        """What each request is lighter by."""
        return max(self.tokens_before - self.tokens_after, 0)


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request of a client to a model, through the proxy."""

    at: float
    """When it came, in seconds since 1970."""

    principal: str
    """The name of the caller."""

    upstream: str
    """The name of the model server."""

    dialect: str
    """What is spoken; empty where it asks for no answer of a model."""

    model: str
    """The model, as the request names it."""

    outcome: RequestOutcome
    status: int
    """The status that the client got; 0 where it got none."""

    seconds: float
    """How long it took, from the request's arrival to the end of its answer."""

    added: float = 0.0
    """How much of that the proxy itself took."""

    first: float | None = None
    """How long the first byte of the answer took; None where there was none."""

    rounds: int = 0
    """How often the upstream was asked."""

    searches: int = 0
    """How many calls were answered without the client."""

    calls: int = 0
    """How many calls the client got."""

    tools: int = 0
    """How many tools the client sent."""

    tokens_before: int = 0
    """What their definitions would have cost in each round."""

    tokens_after: int = 0
    """What those that were sent cost in each round."""

    prompt_tokens: int = 0
    """The prompt's tokens in all rounds, as the upstream reports them."""

    cached_tokens: int = 0
    """Those of them that the upstream had in its cache."""

    completion_tokens: int = 0
    error: str | None = None
    """What went wrong, in one line."""

    tenant: str = "default"
    """Whose it is, among those who share a deployment."""

    @property
    def tokens_saved(self) -> int:
        """What all rounds together are lighter by."""
        return max(self.tokens_before - self.tokens_after, 0) * self.rounds


class Observer(Protocol):
    """Something that is told what happens. It must be quick: it runs on the event loop."""

    def started(self, record: CallRecord) -> None:
        """A call begins that nothing refused."""
        ...

    def progressed(self, record: CallRecord, message: str, fraction: float | None) -> None:
        """A running call says how far it is."""
        ...

    def called(self, record: CallRecord) -> None:
        """A call is over."""
        ...

    def fetched(self, record: CallRecord) -> None:
        """A resource was read or a prompt was got, or not."""
        ...

    def searched(self, record: SearchRecord) -> None:
        """A search is over."""
        ...

    def answered(self, record: SearchRecord) -> None:
        """A call was answered without a tool: a search, a describe, or a mistake."""
        ...

    def server_changed(self, status: ServerStatus) -> None:
        """A server changed its state or its tools."""
        ...

    def folded(self, record: FoldRecord) -> None:
        """What is folded has changed."""
        ...

    def requested(self, record: RequestRecord) -> None:
        """A request to a model is over."""
        ...


class Silent:
    """An observer that passes everything over; the base of those that want a part."""

    def started(self, record: CallRecord) -> None:
        """Pass over."""

    def progressed(self, record: CallRecord, message: str, fraction: float | None) -> None:
        """Pass over."""

    def called(self, record: CallRecord) -> None:
        """Pass over."""

    def fetched(self, record: CallRecord) -> None:
        """Pass over."""

    def answered(self, record: SearchRecord) -> None:
        """Pass over."""

    def searched(self, record: SearchRecord) -> None:
        """Pass over."""

    def server_changed(self, status: ServerStatus) -> None:
        """Pass over."""

    def folded(self, record: FoldRecord) -> None:
        """Pass over."""

    def requested(self, record: RequestRecord) -> None:
        """Pass over."""


class Observers:
    """Tells several observers, in order, and lets none of them break what it observes."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._observers = tuple(observers)
        self._failed: set[tuple[int, type[Exception]]] = set()

    def __bool__(self) -> bool:
        return bool(self._observers)

    def started(self, record: CallRecord) -> None:
        """A call begins."""
        self._tell(lambda observer: observer.started(record))

    def progressed(self, record: CallRecord, message: str, fraction: float | None) -> None:
        """A running call says how far it is."""
        self._tell(lambda observer: observer.progressed(record, message, fraction))

    def called(self, record: CallRecord) -> None:
        """A call is over."""
        self._tell(lambda observer: observer.called(record))

    def fetched(self, record: CallRecord) -> None:
        """A resource was read or a prompt was got, or not."""
        self._tell(lambda observer: observer.fetched(record))

    def searched(self, record: SearchRecord) -> None:
        """A search is over."""
        self._tell(lambda observer: observer.searched(record))

    def answered(self, record: SearchRecord) -> None:
        """A call was answered without a tool."""
        self._tell(lambda observer: observer.answered(record))

    def server_changed(self, status: ServerStatus) -> None:
        """A server changed its state or its tools."""
        self._tell(lambda observer: observer.server_changed(status))

    def folded(self, record: FoldRecord) -> None:
        """What is folded has changed."""
        self._tell(lambda observer: observer.folded(record))

    def requested(self, record: RequestRecord) -> None:
        """A request to a model is over."""
        self._tell(lambda observer: observer.requested(record))

    def _tell(self, tell: Callable[[Observer], None]) -> None:
        for position, observer in enumerate(self._observers):
            try:
                tell(observer)
            except Exception as error:
                # Once for each kind: what fails at every call would fill the log.
                if (position, type(error)) not in self._failed:
                    self._failed.add((position, type(error)))
                    name = type(observer).__name__
                    _log.warning("observer %s failed and is passed over: %r", name, error)
