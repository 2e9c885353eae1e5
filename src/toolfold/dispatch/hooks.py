"""Hooks: what a host says before and after every call of a real tool.

Hooks run in the order in which they were given, before the call and after it. A hook that
raises stops its call: what guards a tool must not fail open.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from toolfold.scope import matches
from toolfold.sources.calls import Output, PendingCall, Refusal

__all__ = ["Decision", "Guardrail", "Hook"]

Decision: TypeAlias = PendingCall | Refusal | Output | None
"""What a hook says before a call: go on (None), go on changed, refuse, or answer itself."""


class Hook:
    """What a host says before and after a call. Override either; both may be asynchronous.

    Example:
        class Dated(Hook):
            def before_call(self, call):
                return call.with_arguments({**call.arguments, "asked_on": today()})
    """

    def before_call(self, call: PendingCall) -> Decision | Awaitable[Decision]:
        """Let the call be (None), change it, refuse it, or give its output without running it."""
        return None

    def after_call(
        self, call: PendingCall, output: Output
    ) -> Output | Awaitable[Output | None] | None:
        """Let the output be (None), or replace it."""
        return None


class Guardrail(Hook):
    """Refuses calls that a check finds fault with.

    Example:
        Guardrail(lambda call: "Not on Sundays." if sunday() else None, match=("@payments",))

    Args:
        check: Returns why a call may not run, as a sentence for the model, or None.
        match: Names, patterns or `@toolset` of the tools it looks at.
    """

    def __init__(
        self, check: Callable[[PendingCall], str | None], match: Iterable[str] = ("*",)
    ) -> None:
        self._check = check
        self._match = tuple(match)

    def before_call(self, call: PendingCall) -> Decision:
        """Refuse the call where the check finds fault."""
        if not matches(call.tool, self._match):
            return None
        reason = self._check(call)
        return None if reason is None else Refusal(reason)


async def before(hooks: Sequence[Hook], call: PendingCall) -> PendingCall | Refusal | Output:
    """Ask all hooks before a call; the first that refuses or answers has the last word."""
    for hook in hooks:
        decision = await _said(lambda h=hook, c=call: h.before_call(c))
        if decision is None:
            continue
        if isinstance(decision, Refusal | Output):
            return decision
        if not isinstance(decision, PendingCall):
            raise TypeError(f"a hook said {type(decision).__name__} before a call")
        if decision.tool.name != call.tool.name:
            raise ValueError(f"a hook turned a call of {call.tool.name!r} into another tool's")
        # Whose call it is, and which, is not a hook's to say; that it may run is, where it
        # says so of this very call and did not merely make one anew.
        is_same = decision.recovered == call.recovered
        doubtful = call.doubtful and (decision.doubtful or not is_same)
        call = replace(call, tool=decision.tool, arguments=decision.arguments, doubtful=doubtful)
    return call


async def after(hooks: Sequence[Hook], call: PendingCall, output: Output) -> Output:
    """Ask all hooks after a call."""
    for hook in hooks:
        replaced = await _said(lambda h=hook, o=output: h.after_call(call, o))
        if not isinstance(replaced, Output | None):
            raise TypeError(f"a hook said {type(replaced).__name__} after a call")
        output = output if replaced is None else replaced
    return output


async def _said(ask: Callable[[], Any]) -> Any:
    """Return what a hook says. Only a cancellation of the call itself passes through it."""
    try:
        said = ask()
        return await said if inspect.isawaitable(said) else said
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("a hook was cancelled") from None
    except SystemExit as error:
        raise RuntimeError(f"a hook tried to exit with {error.code}") from error
