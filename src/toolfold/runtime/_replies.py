"""Read one reply of a model: show its text, stop it where it runs away, find its calls.

Small models write calls as plain text, and sometimes never stop. What may turn out to be
a call, from the brackets or the tag that open it, is not shown before the reply has ended
without one; thinking at the beginning waits with it. A text that repeats itself is cut.
Reading takes time in proportion to the text, however small its pieces are.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Literal

from toolfold.runtime._lenient import THOUGHTS, recovered_calls
from toolfold.runtime._loops import repeats
from toolfold.runtime.messages import ModelMessage
from toolfold.runtime.model import (
    Model,
    ModelError,
    Reply,
    Request,
    TextDelta,
    Usage,
    prompt_text,
)
from toolfold.tokens import estimate

__all__ = ["ReplyText", "read_reply"]

_REPEAT_STRIDE = 400
_TAGS = (
    "<tool", "<TOOLCALL", "<function", "<invoke", "<|tool", "<|python_tag", "<|START_ACTION",
    "<|channel|>comm", "<|start|>", "<｜tool", "[TOOL_", "```tool_c", "```function_call",
    "\nfunctools",
)  # fmt: skip
"""What opens a call wherever it stands."""
_BEGINNINGS = (*_TAGS, "{", "[", "```json", "```\n", "functools", "functions.", ">>>")
"""What opens a call at the beginning of a message."""
_TAG = re.compile("|".join(map(re.escape, (*_TAGS, *THOUGHTS.values()))))
_TAG_START = re.compile(r"[<\[`\n]")
_TAG_LONGEST = max(map(len, (*_TAGS, *THOUGHTS.values())))
_NAME = re.compile(r"\w[\w./-]{0,127}+")


async def read_reply(
    model: Model, request: Request, known: Callable[[str], bool], show: Callable[[str], None]
) -> Reply:
    """Return a model's reply to a request.

    Args:
        model: Whom to ask.
        request: What to ask.
        known: Whether a name can be called.
        show: Gets the text as it comes, without what is a call.

    Raises:
        ModelError: The model cannot be reached, or refuses the request.
    """
    text = ReplyText(show)
    stream = model.stream(request)
    try:
        reply = await _whole(stream, text)
    finally:
        # Whatever ends the reading, a stream that can be closed is, so that the server is told.
        close: Callable[[], Awaitable[object]] | None = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    if reply is None:
        raise ModelError("the model's reply has no end", hint="try again")
    if not reply.usage.prompt:
        made = "".join(call.name + call.arguments for call in reply.message.calls)
        usage = Usage(estimate(prompt_text(request)), estimate(text.written + made))
        reply = replace(reply, usage=usage)
    is_final = reply.message.calls or reply.stop == "refused"
    calls = () if is_final else recovered_calls(reply.message.text, known)
    if calls:
        return replace(reply, message=replace(reply.message, calls=calls), stop="calls")
    text.release()
    return reply


async def _whole(stream: AsyncIterator[TextDelta | Reply], text: ReplyText) -> Reply | None:
    async for event in stream:
        if isinstance(event, Reply):
            return event
        cut = text.add(event.text)
        if cut is not None:
            return Reply(ModelMessage(text.written[:cut]), stop="length")
    return None


class ReplyText:
    """The text of a reply so far, and how much of it was shown.

    It is read in states, so that no character is looked at again for every piece: at a
    beginning, in thinking there, in prose, or held back to the end.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._pieces: list[str] = []
        self._show = show
        self._state: Literal["beginning", "thought", "prose", "held"] = "beginning"
        self._closing = ""
        self._kept: list[str] = []  # read, and held back
        self._rest = ""  # not read yet
        self._unchecked = 0

    @property
    def written(self) -> str:
        """All of it."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def add(self, piece: str) -> int | None:
        """Take a piece; return where to cut, once the text repeats itself."""
        self._pieces.append(piece)
        self._rest += piece
        while self._step():
            pass
        self._unchecked += len(piece)
        if self._unchecked < _REPEAT_STRIDE:
            return None
        self._unchecked = 0
        return repeats(self.written)

    def release(self) -> None:
        """Show what has been held back."""
        self._keep(len(self._rest))
        if held := "".join(self._kept):
            self._show(held)
        self._kept.clear()

    def _keep(self, end: int) -> None:
        if end:
            self._kept.append(self._rest[:end])
            self._rest = self._rest[end:]

    def _step(self) -> bool:
        """Read on; return whether the state has changed."""
        state = self._state
        match state:
            case "beginning":
                self._begin()
            case "thought":
                self._think()
            case "prose":
                self._tell()
            case "held":
                self._keep(len(self._rest))
        return self._state != state

    def _begin(self) -> None:
        self._keep(len(self._rest) - len(self._rest.lstrip()))
        rest = self._rest
        if not rest:
            return
        for opening, closing in THOUGHTS.items():
            if rest.startswith(opening):
                self._state, self._closing = "thought", closing
                return
        name = _NAME.match(rest)
        after = rest[name.end() :] if name else ""
        if rest.startswith(_BEGINNINGS) or after.startswith(("{", "[ARGS]")):
            self._state = "held"
        elif not (
            any(opening.startswith(rest) for opening in (*_BEGINNINGS, *THOUGHTS))
            or (name and "[ARGS]".startswith(after))
        ):
            self._state = "prose"

    def _think(self) -> None:
        end = self._rest.find(self._closing)
        if end >= 0:
            self._keep(end + len(self._closing))
            self._state = "beginning"
        else:
            self._keep(max(len(self._rest) - len(self._closing) + 1, 0))

    def _tell(self) -> None:
        """Show prose up to what opens a call, or may with the next piece."""
        tag = _TAG.search(self._rest)
        if tag is None:
            self._keep(_undecided(self._rest))
        elif tag[0] in THOUGHTS.values():
            # A template that opens the thinking itself leaves only its end in the answer.
            self._keep(tag.end())
            self._state = "beginning"
        else:
            self._keep(tag.start())
            self._state = "held"
        if shown := "".join(self._kept):
            self._show(shown)
        self._kept.clear()


def _undecided(text: str) -> int:
    """Return where the beginning of a tag may stand at the end of a text; its end where none."""
    known = (*_TAGS, *THOUGHTS.values())
    for start in _TAG_START.finditer(text, max(len(text) - _TAG_LONGEST, 0)):
        if any(tag.startswith(text[start.start() :]) for tag in known):
            return start.start()
    return len(text)
