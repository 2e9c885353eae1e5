"""Counts and times for Prometheus.

Written by hand: the format is a page long, and the library for it costs more at start
than all of this. What a label may hold is bounded: the first thousand tools have one of
their own, the others share `other`, so a server that invents names cannot fill the memory
of whoever collects them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from toolfold.dispatch.records import CallRecord, FoldRecord, SearchRecord, Silent
from toolfold.sources.mcp.server_status import ServerStatus

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The type of the text, for the answer's header."""

TOOLS_AT_MOST = 1_000
SERVERS_AT_MOST = 200
OTHER = "other"

_CALL_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_SEARCH_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)

Labels = tuple[tuple[str, str], ...]


class _Times:
    """How many took how long."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    def samples(self, name: str, labels: Labels) -> Iterator[str]:
        below = 0
        for bound, count in zip((*self.bounds, None), self.counts, strict=True):
            below += count
            text = "+Inf" if bound is None else f"{bound:g}"
            yield _sample(f"{name}_bucket", (*labels, ("le", text)), below)
        yield _sample(f"{name}_sum", labels, self.total)
        yield _sample(f"{name}_count", labels, below)


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
        self._call_times: dict[str, _Times] = {}
        self._searches = 0
        self._empty_searches = 0
        self._hits = 0
        self._search_times = _Times(_SEARCH_BUCKETS)
        self._servers: dict[str, ServerStatus] = {}
        self._fold: FoldRecord | None = None
        self._refusals: dict[str, int] = {}

    def called(self, record: CallRecord) -> None:
        """Count a call."""
        server = self._server_names.label(record.server)
        tool = self._tools.label(record.tool) if server != OTHER else OTHER
        labels = (("server", server), ("tool", tool), ("outcome", record.outcome or "running"))
        self._calls[labels] = self._calls.get(labels, 0) + 1
        times = self._call_times.get(server)
        if times is None:
            times = self._call_times[server] = _Times(_CALL_BUCKETS)
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

    def refused(self, reason: str) -> None:
        """Count a request that was turned away at the door."""
        self._refusals[reason] = self._refusals.get(reason, 0) + 1

    def text(self) -> str:
        """Return everything in Prometheus' text format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _family(
            "toolfold_info", "gauge", "The version.", {(("version", self._version),): 1}
        )
        yield from _family("toolfold_calls", "counter", "Calls of tools.", dict(self._calls))
        yield from _head("toolfold_call_seconds", "histogram", "How long calls took.")
        for server, times in list(self._call_times.items()):
            yield from times.samples("toolfold_call_seconds", (("server", server),))
        yield from self._search_lines()
        yield from self._server_lines()
        yield from self._fold_lines()
        refusals = {(("reason", reason),): count for reason, count in self._refusals.items()}
        yield from _family(
            "toolfold_requests_refused", "counter", "Requests turned away at the door.", refusals
        )
        for name, meaning, count in (
            ("toolfold_sessions", "Sessions that are open.", self._sessions),
            ("toolfold_calls_in_flight", "Calls that are running.", self._in_flight),
        ):
            if count is not None:
                yield from _family(name, "gauge", meaning, {(): count()})

    def _search_lines(self) -> Iterator[str]:
        for name, meaning, count in (
            ("toolfold_searches", "Searches of the catalog.", self._searches),
            ("toolfold_searches_empty", "Searches that found nothing.", self._empty_searches),
            ("toolfold_search_hits", "Tools that searches found.", self._hits),
        ):
            yield from _family(name, "counter", meaning, {(): count})
        yield from _head("toolfold_search_seconds", "histogram", "How long searches took.")
        yield from self._search_times.samples("toolfold_search_seconds", ())

    def _server_lines(self) -> Iterator[str]:
        servers = [((("server", name),), status) for name, status in self._servers.items()]
        # A server whose tools all wait for approval is up; there is just nothing to call.
        up = {labels: int(s.state in ("ready", "quarantined")) for labels, s in servers}
        tools = {labels: status.tools for labels, status in servers}
        waiting = {labels: status.quarantined for labels, status in servers}
        restarts = {labels: status.restarts for labels, status in servers}
        yield from _family("toolfold_server_up", "gauge", "Whether a server runs.", up)
        yield from _family("toolfold_server_tools", "gauge", "Tools a server has.", tools)
        yield from _family(
            "toolfold_server_quarantined", "gauge", "Tools that wait for approval.", waiting
        )
        yield from _family(
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
            yield from _family(name, "gauge", meaning, {(): value})


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _family(
    name: str,
    kind: Literal["counter", "gauge"],
    meaning: str,
    samples: Mapping[Labels, float],
) -> Iterator[str]:
    name = f"{name}_total" if kind == "counter" else name
    yield from _head(name, kind, meaning)
    for labels, value in samples.items():
        yield _sample(name, labels, value)


def _sample(name: str, labels: Labels, value: float) -> str:
    inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inner}}} {value}" if inner else f"{name} {value}"


def _escaped(text: str) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return text.encode("utf-8", "replace").decode()
