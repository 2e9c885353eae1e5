"""Round trips of recorded conversations under each strategy, by the bundled traces.

    python -m bench trips

No model is asked: one that follows the record finds its way through the tools that it sees.
"""

from __future__ import annotations

from typing import Any

from bench.progress import Progress
from toolfold.evaluation.ab.arms import ARMS
from toolfold.evaluation.replay import Replayed, replay, totals
from toolfold.evaluation.trace import TRACES, read_trace

__all__ = ["trips"]

_UNFOLDED = "unfolded"
_STRATEGIES = (_UNFOLDED, "bridge", "bridge+sure", "bridge+prefetch", "stub", "bridge+describe")


def trips() -> list[dict[str, Any]]:
    """Round trips more than unfolded, for each tool that six recorded conversations need."""
    files = sorted(TRACES.glob("*.jsonl"))
    results: list[Replayed] = []
    with Progress("trips", len(files)) as progress:
        for file in files:
            progress.step(file.stem)
            trace = read_trace(str(file))
            results += [replay(trace, ARMS[name]) for name in _STRATEGIES]
    whole = {total.strategy: total for total in totals(results)}
    plain = whole[_UNFOLDED]
    return [
        {
            "what": name,
            "round trips": total.round_trips,
            "a need": round((total.round_trips - plain.round_trips) / total.needs, 3),
            "needs met": f"{total.met}/{total.needs}",
            "tokens read": total.usage.prompt,
        }
        for name, total in whole.items()
    ]
