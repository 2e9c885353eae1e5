"""Answers of the Messages API: the upstream's rounds read, one message for the client written.

Text and thinking go out as they come, and so do calls of open tools; a block of any other call
waits until the round is over. However many rounds there are, the client sees one start, blocks
counted through, and one end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolfold._json_values import parse, sendable
from toolfold.proxy.complaints import error_kind
from toolfold.proxy.dialects.answers import CUT, StreamedAnswer, WholeAnswer, recovered
from toolfold.proxy.dialects.events import (
    event,
    is_taken,
    kind_of,
    place_in,
    read_error,
    read_event,
    rewritten,
)
from toolfold.proxy.dialects.held_text import HeldText
from toolfold.proxy.recovery import Recovery
from toolfold.proxy.turns import HandedCall, ModelCall, RoundTurn
from toolfold.runtime._loose import arguments_text
from toolfold.runtime.clients._anthropic_reader import MessagesReader
from toolfold.runtime.clients._sse import ServerSentEvent
from toolfold.runtime.model import Reply
from toolfold.tool import Json, is_array, is_object

__all__ = ["MessageStream", "WholeMessage"]

_ID_PREFIX = "toolu_"
_CONTEXT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class MessageStream(StreamedAnswer):
    """A streamed answer.

    Args:
        is_open: Whether a call of this name is the client's own business.
        recovery: What reads calls that the model writes as text, where that is to be.
    """

    def __init__(self, is_open: Callable[[str], bool], recovery: Recovery | None = None) -> None:
        super().__init__(MessagesReader, recovery)
        self._is_open = is_open
        self._next = 0
        self.begin()

    def begin(self) -> None:
        """Begin the next round."""
        super().begin()
        self._held: list[tuple[ServerSentEvent, dict[str, Json]]] = []
        self._places: dict[Json, int] = {}
        self._waiting: set[Json] = set()
        self._out: set[str] = set()
        self._context: dict[str, Json] = {}
        self._delta: dict[str, Json] = {}
        self._gate = None if self._recovery is None else HeldText()

    def _turn(self, reply: Reply) -> RoundTurn:
        calls = recovered(self._recovery, reply, _ID_PREFIX)
        if calls:
            return called_turn(reply, calls)
        self._rest += self._released()
        return round_turn(reply, self._out)

    def _released(self) -> bytes:
        """Return what was held as it might have been the text of a call."""
        held = self._gate.released() if self._gate is not None else ()
        return b"".join(self._placed(*one) for one in held)

    @property
    def _holds_calls(self) -> bool:
        return bool(self._waiting)

    def as_it_came(self) -> bytes:
        """Return what was held back of the round."""
        held = b"".join(self._placed(*one) for one in self._held)
        return self._beginning.ended(self._rest + held)

    def finished(self, handed: Sequence[HandedCall], note: str = "") -> bytes:
        """Return the calls for the client, and the end."""
        out = [self._rest]
        if note:
            out.append(self._block({"type": "text", "text": ""}, "text_delta", "text", note))
        for one in handed:
            if not one.call.is_out:
                named = {"type": "tool_use", "id": one.call.id, "name": one.name}
                block: dict[str, Json] = {**named, "input": dict[str, Json]()}
                given = arguments_text(one.arguments) or "{}"
                out.append(self._block(block, "input_json_delta", "partial_json", given))
        own = self._delta.get("delta")
        delta: dict[str, Json] = own if is_object(own) else {}
        delta = {**delta, "stop_reason": stop_reason(delta.get("stop_reason"), handed)}
        counts = self._delta.get("usage")
        usage = {**self._context, **(counts if is_object(counts) else {"output_tokens": 0})}
        ended = {"type": "message_delta", **self._delta, "delta": delta, "usage": usage}
        out.append(event(ended, "message_delta"))
        out.append(event({"type": "message_stop"}, "message_stop"))
        return self._beginning.before(b"".join(out))

    def keep_alive(self) -> bytes:
        """Return a ping."""
        return event({"type": "ping"}, "ping")

    def broken(self, message: str, status: int = 502, body: bytes = b"") -> bytes:
        """Return the error of an upstream that broke off in mid-stream."""
        return event(_error(message, status, body), "error")

    def _event(self, came: ServerSentEvent) -> bytes:
        content = read_event(came)
        if self._is_foreign or content is None:
            self._is_foreign = self._is_foreign or content is None
            return rewritten(came)
        if not is_taken(self._reader, came):
            self._is_foreign = True
            return rewritten(came)
        match kind_of(came, content):
            case "message_start":
                return self._begun(came, content)
            case "content_block_start":
                return self._started(came, content)
            case "content_block_delta" | "content_block_stop" if self._holds(content):
                return self._told(came, content)
            case "content_block_delta" | "content_block_stop":
                if place_in(content, "index") in self._waiting:
                    self._held.append((came, content))
                    return b""
                return self._placed(came, content)
            case "message_delta":
                self._delta = content
                self._held.append((came, content))
                return b""
            case "message_stop":
                self._held.append((came, content))
                return b""
            case _:
                return self._beginning.held(rewritten(came))

    def _begun(self, came: ServerSentEvent, content: dict[str, Json]) -> bytes:
        message = content.get("message")
        usage = message.get("usage") if is_object(message) else None
        counts: dict[str, Json] = usage if is_object(usage) else {}
        self._context = {key: counts[key] for key in _CONTEXT if key in counts}
        return self._beginning.held(rewritten(came)) if self._round == 1 else b""

    def _started(self, came: ServerSentEvent, content: dict[str, Json]) -> bytes:
        block = content.get("content_block")
        if is_object(block) and block.get("type") == "tool_use":
            if not self._is_open(str(block.get("name"))):
                self._waiting.add(place_in(content, "index"))
                self._held.append((came, content))
                return b""
            self._out.add(str(block.get("id") or ""))
        if self._gate is not None and is_object(block) and block.get("type") == "text":
            self._gate.places.add(place_in(content, "index"))
            return self._told(came, {**content})
        return self._placed(came, content)

    def _holds(self, content: dict[str, Json]) -> bool:
        """Whether an event is of a block of text that may yet be a call."""
        return self._gate is not None and place_in(content, "index") in self._gate.places

    def _told(self, came: ServerSentEvent, content: dict[str, Json]) -> bytes:
        assert self._gate is not None
        delta = content.get("delta")
        text = delta.get("text") if is_object(delta) else None
        held = self._gate.add(text if isinstance(text, str) else "", (came, content))
        return b"".join(self._placed(*one) for one in held)

    def _placed(self, came: ServerSentEvent, content: dict[str, Json]) -> bytes:
        """Return an event with its block's place in the client's message."""
        index = place_in(content, "index")
        if index is None:
            return rewritten(came)
        if index not in self._places:
            self._places[index] = self._next
            self._next += 1
        place = self._places[index]
        if place == index:
            return rewritten(came)
        return event({**content, "index": place}, came.name)

    def _block(self, block: dict[str, Json], kind: str, key: str, text: str) -> bytes:
        """Return the events of a block of our own."""
        place, self._next = self._next, self._next + 1
        return b"".join(
            event({"type": name, "index": place, **more}, name)
            for name, more in (
                ("content_block_start", {"content_block": block}),
                ("content_block_delta", {"delta": {"type": kind, key: text}}),
                ("content_block_stop", {}),
            )
        )


class WholeMessage(WholeAnswer):
    """An answer in one piece.

    Args:
        recovery: What reads calls that the model writes as text, where that is to be.
    """

    def __init__(self, recovery: Recovery | None = None) -> None:
        super().__init__(MessagesReader, recovery)
        self._message: dict[str, Json] = {}
        self._seen: list[Json] = []
        self._content: list[Json] = []

    def begin(self) -> None:
        """Begin the next round: what is no call of this one stays for the client."""
        self._seen += [block for block in self._content if not _is_call(block)]

    def _turn(self, reply: Reply, answer: dict[str, Json]) -> RoundTurn | None:
        content = answer.get("content")
        if not is_array(content):
            return None
        self._message, self._content = answer, content
        calls = recovered(self._recovery, reply, _ID_PREFIX)
        if not calls:
            return round_turn(reply, frozenset())
        kept = [block for block in content if not _is_text(block)]
        self._content = [*kept, *(_block(call) for call in calls)]
        return called_turn(reply, calls)

    def as_it_came(self) -> bytes:
        """Return the last answer; with what was said before it, where there is anything."""
        if not self._seen:
            return self._body
        return sendable({**self._message, "content": [*self._seen, *self._content]})

    def finished(self, handed: Sequence[HandedCall], note: str = "") -> bytes:
        """Return the rounds' answers as one."""
        ours = {one.call.id: one for one in handed}
        content: list[Json] = list(self._seen)
        for block in self._content:
            if not _is_call(block):
                content.append(block)
            elif (one := ours.get(str(block.get("id") or ""))) is not None:
                given = parse(arguments_text(one.arguments) or "{}")
                content.append({**block, "name": one.name, "input": given})
        content += [{"type": "text", "text": note}] if note else []
        stop = stop_reason(self._message.get("stop_reason"), handed)
        return sendable({**self._message, "content": content, "stop_reason": stop})

    def broken(self, message: str, status: int = 502, body: bytes = b"") -> bytes:
        """Return an error."""
        return sendable(_error(message, status, body))


def _error(message: str, status: int, body: bytes) -> dict[str, Json]:
    own = read_error(body)
    error = own if own.get("type") else {"type": error_kind(status), "message": message}
    return {"type": "error", "error": error}


def stop_reason(came: Json, handed: Sequence[HandedCall]) -> Json:
    """Return why the message ends, for a client that knows only of the calls it was handed."""
    if handed and came in (None, "end_turn", "tool_use"):
        return "tool_use"
    return "end_turn" if came in (None, "tool_use") else came


def round_turn(reply: Reply, out: frozenset[str] | set[str]) -> RoundTurn:
    """Return what a reply says, as a message of the conversation, too.

    Args:
        reply: The reply.
        out: The ids of the calls that the client has already.
    """
    calls = tuple(
        ModelCall(call.id, call.name, call.arguments, place=place, is_out=call.id in out)
        for place, call in enumerate(reply.message.calls)
    )
    blocks = [block for block in reply.message.native if not _is_blank(block)]
    text = sendable({"role": "assistant", "content": blocks}).decode()
    return RoundTurn((text,), calls, reply.message.text, reply.usage, reply.stop in CUT)


def called_turn(reply: Reply, calls: Sequence[ModelCall]) -> RoundTurn:
    """Return a turn whose calls were written as text, as if they had been made."""
    kept = [block for block in reply.message.native if not _is_text(block)]
    content = [*kept, *(_block(call) for call in calls)]
    text = sendable({"role": "assistant", "content": content}).decode()
    return RoundTurn((text,), calls, "", reply.usage)


def _block(call: ModelCall) -> dict[str, Json]:
    given = parse(arguments_text(call.arguments) or "{}")
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _is_text(block: Json) -> bool:
    return is_object(block) and block.get("type") == "text"


def _is_call(block: Json) -> bool:
    return is_object(block) and block.get("type") == "tool_use"


def _is_blank(block: Json) -> bool:
    """Whether a block is a text without any, which the API sends and does not take back."""
    return is_object(block) and block.get("type") == "text" and not block.get("text")
