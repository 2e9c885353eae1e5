"""Models that go round in circles: the same calls, or the same words, again and again.

Calls: a step is what the model called and what came back. A cycle of one, two or three
steps that comes back unchanged is a loop; the same calls with other results, as where a
job is being waited for, are one only after many more times. Words: a text whose tail is
one piece over and over is cut behind the piece; in a code fence only after much more of
it. Both look at a bounded past.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Literal

from toolfold.errors import InvalidToolError
from toolfold.runtime._loose import loose_json
from toolfold.runtime.messages import Call, ResultMessage
from toolfold.tool import canonical

__all__ = ["LoopGuard", "repeats"]

_PERIODS = (1, 2, 3)
_SAME_WARN, _SAME_STOP = 3, 6
_CALLS_WARN, _CALLS_STOP = 12, 25
_LOOKED_AT = _PERIODS[-1] * _CALLS_STOP

_PIECE_AT_MOST = 400
_PIECES_AT_LEAST = 6
_WORDS_AT_LEAST = 600
_MARKS_AT_LEAST = 4_000
"""What blanks, zeros and the like, and lines of code, may come to before they are a loop."""
_LETTERS_OF_WORDS = 4
_PIECE_END = re.compile(r"[.!?]+(?=\s)|\n")
_FENCE = re.compile(r"^[ \t]*+(?:```|~~~)", re.MULTILINE)


class LoopGuard:
    """Watches the calls of one turn.

    Example:
        guard = LoopGuard()
        if guard.step(message.calls, results) == "stop":
            ...
    """

    __slots__ = ("_calls", "_steps", "times")

    def __init__(self) -> None:
        self._calls: list[bytes] = []
        self._steps: list[tuple[bytes, bytes]] = []
        self.times = 0
        """How often the last cycle has come so far."""

    def step(
        self, calls: Sequence[Call], results: Sequence[ResultMessage]
    ) -> Literal["go", "warn", "stop"]:
        """Take one step, and say whether to go on, to warn the model, or to stop.

        Args:
            calls: What the model called in one reply.
            results: What that came to, before any warning was added.
        """
        pairs = sorted(
            (f"{call.name} {_canonical(call.arguments)}", result.text)
            for call, result in zip(calls, results, strict=False)
        )
        called_now = _digest([call for call, _ in pairs])
        self._calls.append(called_now)
        self._steps.append((called_now, _digest([result for _, result in pairs])))
        del self._calls[:-_LOOKED_AT], self._steps[:-_LOOKED_AT]
        same, called = _cycles(self._steps), _cycles(self._calls)
        self.times = same if same >= _SAME_WARN else called
        if same >= _SAME_STOP or called >= _CALLS_STOP:
            return "stop"
        return "warn" if same >= _SAME_WARN or called >= _CALLS_WARN else "go"


def repeats(text: str) -> int | None:
    """Return where to cut a text whose tail is one piece over and over, or None.

    The piece itself stays once. Only the tail is looked at until it repeats, so that a text
    can be asked about as it grows, every few hundred characters.
    """
    if len(text) < _WORDS_AT_LEAST:
        return None
    tail = text[-_PIECE_AT_MOST * _PIECES_AT_LEAST :]
    for period in range(1, _PIECE_AT_MOST + 1):
        length = max(period * _PIECES_AT_LEAST, _WORDS_AT_LEAST)
        if length > len(tail):
            return None
        if tail[-1] == tail[-1 - period] and tail[-length:-period] == tail[period - length :]:
            return _cut(text, period, length)
    return None


def _cut(text: str, period: int, length: int) -> int | None:
    """Return where to cut a text that ends in `length` characters of this period, or None."""
    start = len(text) - length
    piece = text[start : start + period]
    while start >= period and text.startswith(piece, start - period):
        start -= period
    while start and text[start - 1] == text[start - 1 + period]:
        start -= 1
    letters = {character for character in piece.lower() if character.isalnum()}
    if len(text) - start < _MARKS_AT_LEAST and (
        len(letters) < _LETTERS_OF_WORDS or _is_code(text, start)
    ):
        return None
    # Where the piece begins need not be where its sentence does: the cut goes behind a whole one.
    end = _PIECE_END.search(text, max(start, start + period - 3), start + 2 * period)
    return end.end() if end else start + period


def _is_code(text: str, at: int) -> bool:
    """Whether a place stands in a fence: data and code may well say the same line many times."""
    return len(_FENCE.findall(text, 0, at)) % 2 == 1


def _cycles(steps: Sequence[object]) -> int:
    """Return how many times in a row the last steps stand at the end: one, two or three."""
    last = len(steps) - 1
    times = 1
    for period in _PERIODS:
        matching = 0
        while (
            matching <= last - period and steps[last - matching] == steps[last - matching - period]
        ):
            matching += 1
        times = max(times, matching // period + 1)
    return times


def _canonical(arguments: str) -> str:
    """Return arguments such that those that mean the same read the same."""
    read = loose_json(arguments)
    if read is None or arguments[read.end :].strip():
        return arguments.strip()
    try:
        return canonical(read.value).decode()
    except InvalidToolError:
        return arguments.strip()


def _digest(texts: Sequence[str]) -> bytes:
    parts = "".join([f"{len(text)}:{text}" for text in texts])
    return hashlib.sha1(parts.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
