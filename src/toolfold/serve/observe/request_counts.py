"""Counts and times of requests to models, for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from toolfold.dispatch.records import RequestRecord
from toolfold.serve.observe.exposition import Labels, Times, family, head

__all__ = ["RequestCounts"]

_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_ADDED_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_SUMS = {
    "rounds": "Times that upstreams were asked for an answer.",
    "searches": "Calls that were answered without the client.",
    "calls": "Calls that clients got.",
    "prompt_tokens": "Tokens of prompts, as upstreams report them.",
    "cached_tokens": "Tokens of prompts that upstreams had in their cache.",
    "completion_tokens": "Tokens of answers, as upstreams report them.",
}


class RequestCounts:
    """Counts the requests that the proxy passes; of a gateway without one, nothing is written."""

    def __init__(self) -> None:
        self._requests: Counter[Labels] = Counter()
        self._sums: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._times = Times(_BUCKETS)
        self._first = Times(_BUCKETS)
        self._added = Times(_ADDED_BUCKETS)

    def add(self, record: RequestRecord, upstream: str) -> None:
        """Count a request.

        Args:
            record: The request.
            upstream: The label of its upstream.
        """
        dialect = record.dialect or "other"
        labels = (("upstream", upstream), ("dialect", dialect), ("outcome", record.outcome))
        self._requests[labels] += 1
        if not record.dialect:
            return
        self._times.add(record.seconds)
        self._added.add(record.added)
        if record.first is not None:
            self._first.add(record.first)
        for name in _SUMS:
            self._sums[name] += getattr(record, name)
        self._tokens["before"] += record.tokens_before * record.rounds
        self._tokens["after"] += record.tokens_after * record.rounds

    def lines(self) -> Iterator[str]:
        """Yield everything in Prometheus' text format."""
        if not self._requests:
            return
        name = "toolfold_requests"
        yield from family(name, "counter", "Requests through the proxy.", dict(self._requests))
        for each, meaning, times in (
            ("seconds", "How long requests for an answer took.", self._times),
            ("first_byte_seconds", "How long their first byte took.", self._first),
            ("added_seconds", "How long the proxy itself worked on them.", self._added),
        ):
            yield from head(f"toolfold_request_{each}", "histogram", meaning)
            yield from times.samples(f"toolfold_request_{each}", ())
        for each, meaning in _SUMS.items():
            value = {(): self._sums[each]}
            yield from family(f"toolfold_request_{each}", "counter", meaning, value)
        meaning = "Tokens of tool definitions, before and after folding, in all rounds."
        tokens: dict[Labels, float] = {
            (("folding", when),): self._tokens[when] for when in ("before", "after")
        }
        yield from family("toolfold_request_tool_tokens", "counter", meaning, tokens)
