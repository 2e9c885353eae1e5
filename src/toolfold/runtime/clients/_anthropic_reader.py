"""Replies of `/v1/messages`.

A reply is a list of blocks. All of them are kept as they came, since a thinking block must
go back with its signature; text and calls are also taken out for the agent. Arguments are
kept as they were written, which the blocks do not do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from toolfold._json_values import compact
from toolfold.runtime._loose import arguments_text
from toolfold.runtime.clients._endpoint import Piece, Whole
from toolfold.runtime.clients._exchange import ReplyReader, event_json
from toolfold.runtime.clients._failure import Failure, reported
from toolfold.runtime.messages import Call, ModelMessage
from toolfold.runtime.model import Reply, Stop, Usage
from toolfold.tool import Json, is_array, is_object

__all__ = ["MessagesReader"]

_STOPS: dict[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
_PAUSED = "pause_turn"
"""What a provider says that has run tools of its own for long enough."""
_INPUT = "input_tokens"
_CACHED = "cache_read_input_tokens"
_WRITTEN = "cache_creation_input_tokens"
_OUTPUT = "output_tokens"


@dataclass(slots=True)
class _Block:
    """A block that is being written."""

    raw: dict[str, Json]
    """As it began."""

    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """What was added to its fields."""

    is_open: bool = False
    """Whether more of it may come."""

    def add(self, key: str, text: str) -> str:
        self.pieces.setdefault(key, []).append(text)
        return text

    @property
    def is_call(self) -> bool:
        return self.raw.get("type") == "tool_use"

    @property
    def is_cut_off(self) -> bool:
        """Whether it is thinking that was ended before it was signed, which nobody takes back."""
        return self.is_open and self.raw.get("type") == "thinking" and not self.raw.get("signature")

    @property
    def arguments(self) -> str:
        """The arguments of a call, as they were written where they came as text."""
        given = self.raw.get("input")
        written = "".join(self.pieces.get("input", ()))
        return written or (given if isinstance(given, str) else compact(given or {}))

    def whole(self) -> Json:
        block = dict(self.raw)
        for key in ("text", "thinking"):
            if key in self.pieces:
                block[key] = _text(block.get(key)) + "".join(self.pieces[key])
        if "input" in self.pieces:
            block["input"] = json.loads(arguments_text(self.arguments) or "{}")
        return block


class MessagesReader(ReplyReader):
    """Puts one reply together."""

    def __init__(self) -> None:
        super().__init__()
        self._text: list[str] = []
        self._blocks: list[_Block] = []
        self._by_index: dict[Json, _Block] = {}
        self._counts: dict[str, int] = {}
        self._stop = ""

    def read(self, piece: Piece) -> str:
        """Take a piece; return the text in it."""
        if isinstance(piece, Whole):
            return self._message(piece.value)
        data = piece.data.strip()
        if not data or data == "[DONE]":
            return ""
        event = event_json(data)
        return self._event(event, piece.name)

    def reply(self, stop: Stop | None = None) -> Reply:
        """Return the reply as far as it has come."""
        calls = tuple(
            Call(_text(block.raw.get("name")), block.arguments, _text(block.raw.get("id")))
            for block in self._blocks
            if block.is_call
        )
        count = self._counts.get
        cached = count(_CACHED, 0)
        usage = Usage(count(_INPUT, 0) + count(_WRITTEN, 0) + cached, count(_OUTPUT, 0), cached)
        native = tuple(block.whole() for block in self._blocks if not block.is_cut_off)
        ended: Stop = _STOPS.get(self._stop) or ("calls" if calls else "end")
        if ended == "end" and native and self._stop == _PAUSED:
            ended = "paused"
        return Reply(ModelMessage("".join(self._text), calls, native), usage, stop or ended)

    # ---- events

    def _event(self, event: Json, name: str) -> str:
        if not is_object(event):
            raise Failure("a piece of the reply is not an object")
        match event.get("type") or name:
            case "message_start":
                self._count(_object(event.get("message")).get("usage"))
            case "content_block_start":
                return self._start(event.get("index"), _object(event.get("content_block")), True)
            case "content_block_delta":
                return self._delta(event.get("index"), _object(event.get("delta")))
            case "content_block_stop":
                self._by_index.get(event.get("index"), _Block({})).is_open = False
            case "message_delta":
                self._count(event.get("usage"))
                self._end(_object(event.get("delta")).get("stop_reason"))
            case "message_stop":
                self.is_ended = self.is_over = True
            case "error":
                raise reported(event.get("error") or event)
            case _ if event.get("error"):
                raise reported(event["error"])
            case _:
                pass  # a ping, or something newer than this client
        return ""

    def _message(self, message: Json) -> str:
        """Take a reply that came whole."""
        if not is_object(message):
            raise Failure("the reply is not an object")
        if message.get("error") or message.get("type") == "error":
            raise reported(message.get("error") or message)
        content = message.get("content")
        if not is_array(content):
            raise Failure("the reply holds no content", hint="check the base URL")
        text = "".join(self._start(place, _object(block)) for place, block in enumerate(content))
        self._count(message.get("usage"))
        self._end(message.get("stop_reason"))
        self.is_ended = self.is_over = self.is_begun = True
        return text

    def _start(self, index: Json, raw: dict[str, Json], is_open: bool = False) -> str:
        block = _Block(raw, is_open=is_open)
        self._blocks.append(block)
        self._by_index[index] = block
        self.is_begun = True
        self._wrote(_text(raw.get("thinking")))
        return self._said(_text(raw.get("text"))) if raw.get("type") == "text" else ""

    def _delta(self, index: Json, delta: dict[str, Json]) -> str:
        if not self._blocks:
            self._start(index, {"type": "text", "text": ""})
        block = self._by_index.get(index, self._blocks[-1])
        match delta.get("type"):
            case "text_delta":
                return self._said(block.add("text", _text(delta.get("text"))))
            case "input_json_delta":
                self._wrote(block.add("input", _text(delta.get("partial_json"))))
            case "thinking_delta":
                self._wrote(block.add("thinking", _text(delta.get("thinking"))))
            case "signature_delta":
                block.raw["signature"] = _text(delta.get("signature"))
            case "citations_delta":
                cited = block.raw.get("citations")
                before = cited if is_array(cited) else []
                block.raw["citations"] = [*before, delta.get("citation")]
            case _:
                pass
        return ""

    # ---- parts

    def _said(self, text: str) -> str:
        self._text.append(text)
        self._wrote(text)
        return text

    def _wrote(self, text: str) -> None:
        self.written += len(text)
        self.is_begun = self.is_begun or bool(text)

    def _end(self, reason: Json) -> None:
        if reason:
            self._stop = str(reason)
            self.is_ended = True

    def _count(self, usage: Json) -> None:
        """Take counts: each replaces what was said before."""
        for key, value in _object(usage).items():
            if isinstance(value, int):
                self._counts[key] = value


def _object(value: Json) -> dict[str, Json]:
    return value if is_object(value) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
