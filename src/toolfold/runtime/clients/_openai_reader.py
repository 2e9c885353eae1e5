"""Replies of `/chat/completions`, as OpenAI and the many servers like it send them.

The calls of a reply come in pieces that say which call they belong to: by index, as the
API has it, or in other ways, or not at all. Arguments are kept as they were written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolfold._json_values import compact, parse
from toolfold.runtime.clients._endpoint import Piece, Whole
from toolfold.runtime.clients._exchange import ReplyReader, event_json
from toolfold.runtime.clients._failure import Failure, reported
from toolfold.runtime.messages import Call, ModelMessage
from toolfold.runtime.model import Reply, Stop, Usage
from toolfold.tool import Json, is_array, is_object

__all__ = ["KEPT", "NATIVE", "ChatReader"]

NATIVE = "openai-chat"
"""The type of the one native block of a message: what a server wants back with it."""

KEPT = ("reasoning_content", "reasoning_details", "extra_content")
"""Fields of a message or call that a server wants back: DeepSeek its reasoning, OpenRouter
its details, Gemini the signature of its thoughts."""

_THOUGHTS = ("reasoning_content", "reasoning")
_ENDED = "[DONE]"


@dataclass(slots=True)
class _Slot:
    """A call that is being written."""

    index: int | None = None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    kept: dict[str, Json] = field(default_factory=dict[str, Json])
    is_repeated: bool = False
    """Whether its name came again after its arguments were whole."""

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are a whole object."""
        text = self.arguments
        if not text.rstrip().endswith("}"):
            return False
        try:
            return is_object(parse(text, control_characters=True))
        except (ValueError, RecursionError):
            return False


@dataclass(frozen=True, slots=True)
class _CallPiece:
    """A piece of a call, as it came."""

    index: int | None
    id: str
    name: str
    arguments: str
    raw: dict[str, Json]

    @classmethod
    def of(cls, raw: dict[str, Json]) -> _CallPiece:
        function = raw.get("function")
        if not is_object(function):
            function = raw
        index, arguments = raw.get("index"), function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = compact(arguments)
        return cls(
            index if isinstance(index, int) else None,
            _texts(raw.get("id")),
            _texts(function.get("name")),
            arguments or "",
            raw,
        )


class ChatReader(ReplyReader):
    """Puts one reply together."""

    def __init__(self) -> None:
        super().__init__()
        self._text: list[str] = []
        self._slots: list[_Slot] = []
        self._kept: dict[str, Json] = {}
        self._usage = Usage()
        self._finish = ""
        self._is_refused = False
        self._is_answered = False

    def read(self, piece: Piece) -> str:
        """Take a piece; return the text in it."""
        if isinstance(piece, Whole):
            text = self._chunk(piece.value)
            self.is_over = True
            self.is_ended = self.is_begun = self._is_answered
            return text
        data = piece.data.strip()
        if data.startswith(_ENDED):
            self.is_ended = self.is_over = True
            return ""
        if not data:
            return ""
        chunk = event_json(data)
        if piece.name == "error":
            raise reported(chunk)
        return self._chunk(chunk)

    def reply(self, stop: Stop | None = None) -> Reply:
        """Return the reply as far as it has come."""
        calls = tuple(Call(slot.name, slot.arguments, slot.id) for slot in self._slots)
        message = ModelMessage("".join(self._text), calls, self._native())
        return Reply(message, self._usage, stop or self._stop())

    def _stop(self) -> Stop:
        if self._finish == "length":
            return "length"
        if self._finish == "content_filter" or self._is_refused:
            return "refused"
        return "calls" if self._slots else "end"

    def _native(self) -> tuple[Json, ...]:
        calls = [slot.kept for slot in self._slots]
        if not self._kept and not any(calls):
            return ()
        return ({"type": NATIVE, "message": self._kept, "calls": calls},)

    # ---- pieces

    def _chunk(self, chunk: Json) -> str:
        """Take a chunk, or a whole completion; return its text."""
        if is_array(chunk) and chunk:
            chunk = chunk[0]
        if not is_object(chunk):
            raise Failure("a piece of the reply is not an object")
        if chunk.get("error") or chunk.get("object") == "error":
            raise reported(chunk)
        self._count(chunk.get("usage"))
        choices = chunk.get("choices")
        self._is_answered = self._is_answered or bool(choices)
        text = ""
        for choice in choices if is_array(choices) else ():
            if is_object(choice) and choice.get("index") in (0, None):
                text += self._choice(choice)
        return text

    def _choice(self, choice: dict[str, Json]) -> str:
        delta, message = choice.get("delta"), choice.get("message")
        text = ""
        if is_object(delta):
            text += self._delta(delta, is_whole=False)
        elif is_object(message):
            text += self._delta(message, is_whole=True)
        self._count(choice.get("usage"))  # as Moonshot sends them
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])
            self.is_ended = True
        return text

    def _delta(self, delta: dict[str, Json], *, is_whole: bool) -> str:
        text = _texts(delta.get("content"))
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._is_refused = True
            text += refusal
        self._text.append(text)
        self._wrote(text)
        # Servers between two names for their thoughts send both.
        self._wrote(max((_texts(delta.get(key)) for key in _THOUGHTS), key=len))
        _keep(self._kept, delta)
        calls = delta.get("tool_calls")
        for place, written in enumerate(calls if is_array(calls) else [calls]):
            if is_object(written):
                self._call(_CallPiece.of(written), is_new=is_whole or place > 0)
        function = delta.get("function_call")
        if is_object(function) and not calls:
            # The field of the first API, which knew one call a reply. llama-cpp-python sends
            # each piece in both.
            self._call(_CallPiece.of({"index": 0, "function": function}), is_new=False)
        return text

    def _call(self, piece: _CallPiece, *, is_new: bool) -> None:
        """Take a piece of a call.

        Args:
            piece: The piece.
            is_new: Whether it begins a call unless its index or id says otherwise.
        """
        slot = None if is_new and piece.index is None else self._slot(piece)
        if slot is None:
            slot = _Slot(piece.index)
            self._slots.append(slot)
        slot.id = slot.id or piece.id
        if piece.name and piece.name != slot.name:
            slot.name += piece.name
        if piece.arguments:
            slot.pieces.append(piece.arguments)
            self._wrote(piece.arguments)
        _keep(slot.kept, piece.raw)
        self.is_begun = True

    def _slot(self, piece: _CallPiece) -> _Slot | None:
        """Return the call that a piece belongs to, or None where it begins another."""
        slot = self._same(piece)
        if slot is None:
            return None
        if not piece.name:
            # What follows whole arguments belongs to a call whose name looked like a repeat.
            if slot.is_repeated and piece.arguments.strip():
                return self._again(slot)
            return slot
        if not slot.name or not slot.is_whole:
            unplaced = piece.index is None and not piece.id and bool(slot.name)
            return None if unplaced and piece.name != slot.name else slot
        if piece.arguments.strip() or piece.name != slot.name:
            return None
        slot.is_repeated = True
        return slot

    def _same(self, piece: _CallPiece) -> _Slot | None:
        """Return the call that a piece names by index and id, or else the last one."""
        slots = [slot for slot in self._slots if piece.index is None or slot.index == piece.index]
        if piece.id:
            return next((slot for slot in reversed(slots) if slot.id in (piece.id, "")), None)
        if not slots and not piece.name:
            # Some servers count the index up with every piece.
            slots = self._slots
        return slots[-1] if slots else None

    def _again(self, slot: _Slot) -> _Slot:
        other = _Slot(slot.index, name=slot.name)
        self._slots.append(other)
        return other

    def _wrote(self, text: str) -> None:
        self.written += len(text)
        self.is_begun = self.is_begun or bool(text)

    def _count(self, usage: Json) -> None:
        if not is_object(usage):
            return
        prompt = _number(usage.get("prompt_tokens"))
        details = usage.get("prompt_tokens_details")
        cached = _number(details.get("cached_tokens")) if is_object(details) else 0
        cached = cached or _number(usage.get("prompt_cache_hit_tokens"))  # as DeepSeek says it
        self._usage = Usage(prompt, _number(usage.get("completion_tokens")), cached)


def _texts(content: Json) -> str:
    """Return the text of a content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if not is_array(content):
        return ""
    parts = (part.get("text") for part in content if is_object(part))
    return "".join(part for part in parts if isinstance(part, str))


def _keep(kept: dict[str, Json], piece: dict[str, Json]) -> None:
    """Add to what is kept: texts and lists grow, anything else is replaced."""
    for key in KEPT:
        value = piece.get(key)
        if value is None or value == "":
            continue
        before = kept.get(key)
        if isinstance(before, str) and isinstance(value, str):
            kept[key] = before + value
        elif is_array(before) and is_array(value):
            kept[key] = [*before, *value]
        else:
            kept[key] = value


def _number(value: Json) -> int:
    return value if isinstance(value, int) and value > 0 else 0
