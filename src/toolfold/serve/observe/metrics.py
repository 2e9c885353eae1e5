"""Counts and times for Prometheus.

Written by hand: the format is a page long, and the library for it costs more at start
than all of this. What a label may hold is bounded: the first thousand tools have one of
their own, the others share `other`, so a server that invents names cannot fill the memory
of whoever collects them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from toolfold.dispatch.records import CallRecord, FoldRecord, RequestRecord, SearchRecord, Silent
from toolfold.serve.observe.exposition import Labels, Times, family, head
from toolfold.serve.observe.request_counts import RequestCounts
from toolfold.sources.mcp.server_status import ServerStatus

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The type of the text, for the answer's header."""

TOOLS_AT_MOST = 1_000
SERVERS_AT_MOST = 200
OTHER = "other"

_CALL_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_SEARCH_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class _Known:
    """Names that have a label of their own, up to a number of them."""

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._names: set[str] = set()

    def label(self, name: str) -> str:
        if name not in self._names:
            if len(self._names) >= self._at_most:
                return OTHER
            self._names.add(name)
        return name


class Metrics(Silent):
    """Counts what happens, and writes it in Prometheus' text format.

    Args:
        version: toolfold's version.
        sessions: How many sessions are open, asked when the text is written.
        in_flight: How many calls are running, asked when the text is written.
    """

    def __init__(
        self,
        version: str = "",
        *,
        sessions: Callable[[], int] | None = None,
        in_flight: Callable[[], int] | None = None,
    ) -> None:
        self._version = version
        self._sessions = sessions
        self._in_flight = in_flight
        self._tools = _Known(TOOLS_AT_MOST)
        self._server_names = _Known(SERVERS_AT_MOST)
        self._calls: dict[Labels, int] = {}
        self._call_times: dict[str, Times] = {}
        self._searches = 0
        self._empty_searches = 0
        self._hits = 0
        self._search_times = Times(_SEARCH_BUCKETS)
        self._servers: dict[str, ServerStatus] = {}
        self._fold: FoldRecord | None = None
        self._refusals: dict[str, int] = {}
        self._requests = RequestCounts()

    def called(self, record: CallRecord) -> None:
        """Count a call."""
        server = self._server_names.label(record.server)
        tool = self._tools.label(record.tool) if server != OTHER else OTHER
        labels = (("server", server), ("tool", tool), ("outcome", record.outcome or "running"))
        self._calls[labels] = self._calls.get(labels, 0) + 1
        times = self._call_times.get(server)
        if times is None:
            times = self._call_times[server] = Times(_CALL_BUCKETS)
        times.add(record.seconds)

    def searched(self, record: SearchRecord) -> None:
        """Count a search."""
        self._searches += 1
        self._empty_searches += record.hits == 0
        self._hits += record.hits
        self._search_times.add(record.seconds)

    def server_changed(self, status: ServerStatus) -> None:
        """Keep a server's state."""
        if self._server_names.label(status.name) != OTHER:
            self._servers[status.name] = status

    def folded(self, record: FoldRecord) -> None:
        """Keep what folding saves."""
        self._fold = record

    def requested(self, record: RequestRecord) -> None:
        """Count a request to a model."""
        self._requests.add(record, self._server_names.label(record.upstream))

    def refused(self, reason: str) -> None:
        """Count a request that was turned away at the door."""
        self._refusals[reason] = self._refusals.get(reason, 0) + 1

    def text(self) -> str:
        """Return everything in Prometheus' text format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from family(
            "toolfold_info", "gauge", "The version.", {(("version", self._version),): 1}
        )
        yield from family("toolfold_calls", "counter", "Calls of tools.", dict(self._calls))
        yield from head("toolfold_call_seconds", "histogram", "How long calls took.")
        for server, times in list(self._call_times.items()):
            yield from times.samples("toolfold_call_seconds", (("server", server),))
        yield from self._search_lines()
        yield from self._server_lines()
        yield from self._fold_lines()
        yield from self._requests.lines()
        refusals = {(("reason", reason),): count for reason, count in self._refusals.items()}
        yield from family(
            "toolfold_requests_refused", "counter", "Requests turned away at the door.", refusals
        )
        for name, meaning, count in (
            ("toolfold_sessions", "Sessions that are open.", self._sessions),
            ("toolfold_calls_in_flight", "Calls that are running.", self._in_flight),
        ):
            if count is not None:
                yield from family(name, "gauge", meaning, {(): count()})

    def _search_lines(self) -> Iterator[str]:
        for name, meaning, count in (
            ("toolfold_searches", "Searches of the catalog.", self._searches),
            ("toolfold_searches_empty", "Searches that found nothing.", self._empty_searches),
            ("toolfold_search_hits", "Tools that searches found.", self._hits),
        ):
            yield from family(name, "counter", meaning, {(): count})
        yield from head("toolfold_search_seconds", "histogram", "How long searches took.")
        yield from self._search_times.samples("toolfold_search_seconds", ())

    def _server_lines(self) -> Iterator[str]:
        servers = [((("server", name),), status) for name, status in self._servers.items()]
        # A server whose tools all wait for approval is up; there is just nothing to call.
        up = {labels: int(s.state in ("ready", "quarantined")) for labels, s in servers}
        tools = {labels: status.tools for labels, status in servers}
        waiting = {labels: status.quarantined for labels, status in servers}
        restarts = {labels: status.restarts for labels, status in servers}
        yield from family("toolfold_server_up", "gauge", "Whether a server runs.", up)
        yield from family("toolfold_server_tools", "gauge", "Tools a server has.", tools)
        yield from family(
            "toolfold_server_quarantined", "gauge", "Tools that wait for approval.", waiting
        )
        yield from family(
            "toolfold_server_restarts", "counter", "Times a server was started again.", restarts
        )

    def _fold_lines(self) -> Iterator[str]:
        if self._fold is None:
            return
        for name, meaning, value in (
            ("toolfold_folding", "Whether the tools are folded.", int(self._fold.is_active)),
            ("toolfold_tools", "Tools behind the gateway.", self._fold.tools),
            ("toolfold_tokens", "Tokens of all definitions.", self._fold.tokens_before),
            (
                "toolfold_tokens_saved",
                "Tokens that folding takes off every request.",
                self._fold.tokens_saved,
            ),
        ):
            yield from family(name, "gauge", meaning, {(): value})
