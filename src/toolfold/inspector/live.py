"""The gateways and proxies that run now, as the page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolfold.serve.control.running_gateways import running_gateways

__all__ = ["live_view"]


def live_view(states: Sequence[Path]) -> dict[str, Any]:
    """Return how the gateways and proxies of this user stand that run now.

    Args:
        states: The folders in which they keep their state.

    Raises:
        ToolfoldError: Running ones cannot be asked on this system.
    """
    return {
        "running": [
            {"pid": each.pid, "error": each.error, **(each.report or {})}
            for each in running_gateways(states)
        ]
    }
