"""Approvals: a person decides about the calls that could do harm.

The person sees the real tool and its real arguments. "Always" holds for the tool as it
was shown: one whose definition changes is asked about again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from toolfold import prompts
from toolfold.dispatch.hooks import Decision, Hook
from toolfold.sources.calls import PendingCall, Refusal

__all__ = ["Approvals", "Ask", "Verdict", "destructive", "not_read_only"]

Verdict = Literal["once", "always", "deny"]
"""What a person says about a call."""

Ask: TypeAlias = Callable[[PendingCall], Awaitable[Verdict | Refusal]]
"""Asks a person; a `Refusal` says why nobody could be."""


def destructive(call: PendingCall) -> bool:
    """Whether the tool may destroy something: unless it says otherwise, as MCP has it."""
    return call.tool.is_destructive


def not_read_only(call: PendingCall) -> bool:
    """Whether the tool does not say that it changes nothing."""
    return not call.tool.is_read_only


class Approvals(Hook):
    """Asks a person before a call runs, one question at a time.

    Args:
        ask: Asks. Anything but "once" and "always" is a no; a `Refusal` is told to the model.
        when: Which calls to ask about. About a call that was read out of text, and whose tool
            is not known to be read-only, they ask in any case.
    """

    def __init__(self, ask: Ask, when: Callable[[PendingCall], bool] = destructive) -> None:
        self._ask = ask
        self._when = when
        self._always: set[tuple[str, bool]] = set()
        self._lock: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def before_call(self, call: PendingCall) -> Decision:
        """Ask, unless the person has said "always" to this very tool.

        "Always" to calls does not hold for what stands in a text, where nobody may have meant
        it; the other way round it does.
        """
        if not (call.doubtful or self._when(call)):
            return None
        digest = call.tool.digest
        async with self._one_at_a_time():
            if (digest, call.doubtful) in self._always:
                return call.approved()
            verdict = await self._ask(call)
            if verdict == "always":
                self._always |= {(digest, call.doubtful), (digest, False)}
        if verdict in ("once", "always"):
            return call.approved()
        return verdict if isinstance(verdict, Refusal) else Refusal(prompts.DENIED)

    def _one_at_a_time(self) -> asyncio.Lock:
        # A lock belongs to one event loop; an `Approvals` may outlive several.
        loop = asyncio.get_running_loop()
        if self._lock is None or self._lock[0] is not loop:
            self._lock = (loop, asyncio.Lock())
        return self._lock[1]
