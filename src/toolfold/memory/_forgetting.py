"""Forgetting: what is asked for, and what has been kept too long.

Requests, what was used together, and the names of tools go together: nothing of what is
forgotten stays behind in another table.
"""

from __future__ import annotations

import time

from toolfold.memory._store import MemoryFile

__all__ = ["GONE_AFTER", "forget_part", "tidy"]

GONE_AFTER = 30 * 86_400.0
"""How long a tool may have been in no catalog before what is kept of it is deleted."""

_NAMED = "IN (SELECT id FROM tools WHERE name = ?)"


def forget_part(
    store: MemoryFile, tool: str | None, principal: str | None, before: float | None
) -> int:
    """Forget what all of some conditions hold for, for good; return how many uses that were.

    Args:
        store: Where it is kept.
        tool: The name of a tool.
        principal: Whose searches.
        before: What was last used before this moment.
    """
    conditions = [
        ("t.name = ?", f"(tool {_NAMED} OR other {_NAMED})", tool),
        ("r.principal = ?", "principal = ?", principal),
        ("u.at < ?", "at < ?", before),
    ]
    given = [(use, pair, value) for use, pair, value in conditions if value is not None]
    gone = store.forget(" AND ".join(use for use, _, _ in given), [value for _, _, value in given])
    store.forget_pairs(
        " AND ".join(pair for _, pair, _ in given),
        [value for _, pair, value in given for _ in range(pair.count("?"))],
    )
    if len(given) == 1 and tool is not None:
        # Searches that found it and led elsewhere name it, too.
        store.forget_tools("name = ?", (tool,))
    store.scrub()
    return gone


def tidy(store: MemoryFile, *, age: float, bound: int) -> None:
    """Forget what is too old or too much, and tools that are gone.

    Args:
        store: Where it is kept.
        age: For how many seconds anything is kept.
        bound: How many requests are.
    """
    now = time.time()
    store.forget("u.at < ?", (now - age,))
    store.forget_pairs("at < ?", (now - age,))
    store.forget_tools("seen < ?", (now - GONE_AFTER,))
    store.forget_oldest(bound)
