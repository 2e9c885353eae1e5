"""How a running proxy stands, and what it has done."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version

from toolfold.config.proxy_config import ProxyConfig
from toolfold.dispatch.records import RequestRecord, Silent
from toolfold.prompts import plural
from toolfold.tool import Json

__all__ = ["ProxyLog", "ProxyReport", "ProxyTally"]

_log = logging.getLogger("toolfold.proxy")


class ProxyTally(Silent):
    """Counts the requests for an answer, and what folding saved."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.folded_requests = 0
        self.rounds = 0
        self.searches = 0
        self.tokens_before = 0
        """What the definitions of tools would have cost in all rounds."""

        self.tokens_after = 0
        """What those that were sent cost."""

        self.prompt_tokens = 0
        self.cached_tokens = 0

    def requested(self, record: RequestRecord) -> None:
        """Count a request."""
        if not record.dialect:
            return
        self.requests[record.upstream] += 1
        self.failed[record.upstream] += record.outcome in ("failed", "refused")
        self.folded_requests += record.outcome == "folded"
        self.rounds += record.rounds
        self.searches += record.searches
        self.tokens_before += record.tokens_before * record.rounds
        self.tokens_after += record.tokens_after * record.rounds
        self.prompt_tokens += record.prompt_tokens
        self.cached_tokens += record.cached_tokens

    @property
    def tokens_saved(self) -> int:
        """What all requests together are lighter by."""
        return max(self.tokens_before - self.tokens_after, 0)

    def summary(self) -> str:
        """Return what it came to, in one line."""
        requests = self.requests.total()
        if not self.folded_requests:
            return f"toolfold: {plural(requests, 'request')}, nothing to fold"
        # Rounded down: something always goes out, and "100%" would say that nothing does.
        share = 100 * self.tokens_saved // max(self.tokens_before, 1)
        searches = "1 search" if self.searches == 1 else f"{self.searches:,} searches"
        return (
            f"toolfold: {plural(requests, 'request')}, {self.folded_requests:,} folded, {searches}"
            f"; {self.tokens_saved:,} tokens of tool definitions saved ({share}%)"
        )


class ProxyLog(Silent):
    """Writes one line of each request for an answer; of the others where they fail."""

    def requested(self, record: RequestRecord) -> None:
        """Write a request down."""
        words = [record.dialect or "other", record.model or "-", record.outcome]
        words += [str(record.status or "-"), f"{record.seconds:.2f} s"]
        if record.tools:
            words.append(f"{record.tokens_before:,} -> {record.tokens_after:,} tokens of tools")
        if record.rounds > 1:
            words.append(f"{record.rounds} rounds")
        line = f"{record.upstream or '-'}: {', '.join(words)}"
        if record.outcome in ("failed", "refused"):
            _log.warning("%s: %s", line, record.error)
        elif record.dialect:
            _log.info("%s", line)
        else:
            _log.debug("%s", line)


class ProxyReport:
    """Says how a proxy stands, as its own user may know it: no key and no token in it.

    Args:
        config: What it was told.
        tally: What has been counted.
        in_flight: How many requests are under way.
    """

    def __init__(
        self, config: ProxyConfig, tally: ProxyTally, in_flight: Callable[[], int]
    ) -> None:
        self._config = config
        self._tally = tally
        self._in_flight = in_flight
        self._began = time.time()
        self.address: str | None = None
        """Where it listens, once it does."""

        self.is_stopping = False

    async def status(self, arguments: Mapping[str, Json]) -> Json:
        """Answer the verb `status`."""
        tally, path = self._tally, self._config.path
        since = datetime.fromtimestamp(self._began, UTC).isoformat(timespec="seconds")
        return {
            "pid": os.getpid(),
            "version": version("toolfold"),
            "transport": "proxy",
            "address": self.address,
            "since": since.replace("+00:00", "Z"),
            "config": None if path is None else str(path.absolute()),
            "stopping": self.is_stopping,
            "in_flight": self._in_flight(),
            "requests": tally.requests.total(),
            "failed": tally.failed.total(),
            "folded_requests": tally.folded_requests,
            "rounds": tally.rounds,
            "searches": tally.searches,
            "tokens_before": tally.tokens_before,
            "tokens_after": tally.tokens_after,
            "prompt_tokens": tally.prompt_tokens,
            "cached_tokens": tally.cached_tokens,
            "upstreams": [
                {
                    "name": each.name,
                    "url": each.url,
                    "requests": tally.requests[each.name],
                    "failed": tally.failed[each.name],
                }
                for each in self._config.proxy.upstreams
            ],
        }
