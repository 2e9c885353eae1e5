"""Forgetting: what is asked for, and what has been kept too long.

Requests, what was used together, and the names of tools go together: nothing of what is
forgotten stays behind in another table.
"""

from __future__ import annotations

import time

from toolfold.memory._kept import KeptMemory

__all__ = ["GONE_AFTER", "forget_part", "tidy"]

GONE_AFTER = 30 * 86_400.0
"""How long a tool may have been in no catalog before what is kept of it is deleted."""


def forget_part(
    store: KeptMemory, tool: str | None, principal: str | None, before: float | None
) -> int:
    """Forget what all of some conditions hold for, for good; return how many uses that were.

    Args:
        store: Where it is kept.
        tool: The name of a tool.
        principal: Whose searches.
        before: What was last used before this moment.
    """
    gone = store.forget(tool=tool, principal=principal, before=before)
    if principal is None and before is None:
        # Searches that found it and led elsewhere name it, too.
        store.forget_tools(name=tool)
    store.scrub()
    return gone


def tidy(store: KeptMemory, *, age: float, bound: int) -> None:
    """Forget what is too old or too much, and tools that are gone.

    Args:
        store: Where it is kept.
        age: For how many seconds anything is kept.
        bound: How many requests are.
    """
    now = time.time()
    store.forget(before=now - age)
    store.forget_tools(unseen=now - GONE_AFTER)
    store.forget_oldest(bound)
