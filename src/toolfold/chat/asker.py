"""Approvals at the prompt: the person sees the real tool and arguments, and says yes or no.

No answer is a no: an empty line, the end of the input, no terminal to ask at. What was
typed before the question was shown does not answer it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold.chat.screen import Screen, shown_json
from toolfold.dispatch.approvals import Verdict
from toolfold.sources._threads import in_thread
from toolfold.sources.calls import PendingCall, Refusal

__all__ = ["Asker"]

_ARGUMENTS_LIMIT = 2_000
_ANSWERS: dict[str, Verdict] = {"y": "once", "yes": "once", "a": "always", "always": "always"}
_WORDS: dict[Verdict, str] = {"once": "y", "always": "a", "deny": "n"}


class Asker:
    """Asks whether a call may run.

    Args:
        screen: Where to ask.
        scripted: Gives the answer in the person's place; None where it has none.
    """

    def __init__(
        self, screen: Screen, scripted: Callable[[], Verdict | None] = lambda: None
    ) -> None:
        self._screen = screen
        self._scripted = scripted

    async def __call__(self, call: PendingCall) -> Verdict | Refusal:
        """Return what the person says, or that nobody is there."""
        # The turn's events are read by another task; let it show what came before the question.
        await asyncio.sleep(0)
        name = one_line(call.tool.shown_name, 200)
        said = self._scripted()
        if said is None and not (sys.stdin.isatty() and self._screen.is_terminal):
            why = "it needs a yes, and there is no terminal to ask at"
            self._screen.line(f"  ⊘ {name}: {why}", "yellow")
            return Refusal(prompts.NOBODY_TO_ASK)
        arguments = shown_json(dict(call.arguments), _ARGUMENTS_LIMIT)
        question = f"Run {name} {arguments}? [y]es / [a]lways / [N]o"
        if said is None:
            _forget_what_was_typed()
        with self._screen.asking(question):
            if said is None:
                return _ANSWERS.get((await _typed_line()).strip().lower(), "deny")
            self._screen.typed(_WORDS[said])
        return said


async def _typed_line() -> str:
    """Return the next line that is typed; waiting for it can be cancelled."""
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()
    ready: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    except NotImplementedError:  # Windows
        return await in_thread(sys.stdin.readline)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, 4_096).decode(errors="replace")


def _forget_what_was_typed() -> None:
    if sys.platform != "win32":
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
