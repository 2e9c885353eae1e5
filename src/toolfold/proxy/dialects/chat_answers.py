"""Answers of chat completions: the upstream's rounds read, one answer for the client written.

Text goes out as it comes. Calls and the end of a round wait until it is known whose they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolfold._json_values import sendable
from toolfold.proxy.complaints import error_kind
from toolfold.proxy.dialects.answers import CUT, StreamedAnswer, WholeAnswer, recovered
from toolfold.proxy.dialects.events import (
    event,
    is_taken,
    read_error,
    read_event,
    rewritten,
)
from toolfold.proxy.recovery import Recovery
from toolfold.proxy.turns import HandedCall, ModelCall, RoundTurn
from toolfold.runtime._loose import arguments_text
from toolfold.runtime._replies import ReplyText
from toolfold.runtime.clients._openai_reader import KEPT, ChatReader
from toolfold.runtime.clients._sse import ServerSentEvent
from toolfold.runtime.model import Reply
from toolfold.tool import Json, is_array, is_object

__all__ = ["ChatStream", "WholeChat"]

_DONE = "[DONE]"
_BETWEEN = "\n\n"
_FIRST_ROUNDS = ("id", "created", "model", "system_fingerprint", "service_tier")
_ID_PREFIX = "call_"


class ChatStream(StreamedAnswer):
    """A streamed answer.

    Args:
        recovery: What reads calls that the model writes as text, where that is to be.
    """

    def __init__(self, recovery: Recovery | None = None) -> None:
        super().__init__(ChatReader, recovery)
        self._first: dict[str, Json] = {}
        self._last: dict[str, Json] = {}
        self._said = False
        self.begin()

    def begin(self) -> None:
        """Begin the next round."""
        super().begin()
        self._held: list[bytes] = []
        self._usage: dict[str, Json] | None = None
        self._finish: Json = None
        self._is_done = self._has_calls = self._says = False
        self._told: list[str] = []
        self._gate = None if self._recovery is None else ReplyText(self._told.append)
        self._gone = 0

    def _turn(self, reply: Reply) -> RoundTurn:
        if self._gate is None:
            return round_turn(reply)
        calls = recovered(self._recovery, reply, _ID_PREFIX)
        if not calls:
            self._gate.release()
            self._rest += self._chunk({"content": rest}) if (rest := self._passed()) else b""
            return round_turn(reply)
        return called_turn(reply, "".join(self._told), calls)

    def _passed(self) -> str:
        """Return the text that may be shown and was not yet."""
        text = "".join(self._told[self._gone :])
        self._gone = len(self._told)
        return text

    @property
    def _holds_calls(self) -> bool:
        return self._has_calls

    def as_it_came(self) -> bytes:
        """Return what was held back of the round."""
        done = b"data: [DONE]\n\n" if self._is_done and self._round > 1 else b""
        return self._beginning.ended(self._rest + b"".join(self._held) + done)

    def finished(self, handed: Sequence[HandedCall], note: str = "") -> bytes:
        """Return the calls for the client, and the end."""
        out = [self._rest]
        if note:
            out.append(self._chunk({"content": note}))
        for place, one in enumerate(handed):
            out.append(self._chunk({"tool_calls": [{"index": place, **call_record(one)}]}))
        out.append(self._chunk({}, finish_reason(self._finish, handed)))
        if self._usage is not None:
            out.append(event({**self._usage, **self._first}))
        return self._beginning.before(b"".join((*out, b"data: [DONE]\n\n")))

    def broken(self, message: str, status: int = 502, body: bytes = b"") -> bytes:
        """Return the error of an upstream that broke off in mid-stream."""
        return event({"error": error_record(message, status, body)})

    def _event(self, came: ServerSentEvent) -> bytes:
        if came.data.strip().startswith(_DONE):
            self._is_done = True
            if self._round == 1:
                self._held.append(rewritten(came))
            return b""
        chunk = read_event(came)
        if self._is_foreign or chunk is None or chunk.get("error") or came.name == "error":
            self._is_foreign = True
            return rewritten(came)
        if not is_taken(self._reader, came):
            self._is_foreign = True
            return rewritten(came)
        if self._round == 1 and not self._first:
            self._first = {key: chunk[key] for key in _FIRST_ROUNDS if key in chunk}
        self._last = chunk
        choices = chunk.get("choices")
        choice = choices[0] if is_array(choices) and choices else None
        if not is_object(choice):
            if not is_object(chunk.get("usage")):
                return rewritten(came) if self._round == 1 else b""
            self._usage = chunk
            self._held.append(self._shown(came, chunk))
            return b""
        return self._choice(came, chunk, choice)

    def _choice(
        self, came: ServerSentEvent, chunk: dict[str, Json], choice: dict[str, Json]
    ) -> bytes:
        raw = choice.get("delta")
        delta: dict[str, Json] = raw if is_object(raw) else {}
        finish = choice.get("finish_reason")
        calls = {key: delta[key] for key in ("tool_calls", "function_call") if delta.get(key)}
        self._has_calls = self._has_calls or bool(calls)
        if finish:
            self._finish = finish
            if is_object(chunk.get("usage")):
                kept = {key: value for key, value in chunk.items() if key != "choices"}
                self._usage = {**kept, "choices": []}
        content = delta.get("content")
        if self._gate is not None and isinstance(content, str) and content:
            self._gate.add(content)
            delta = {**delta, "content": self._passed()}
            if not calls and not finish:
                return self._later(chunk, choice, delta)
        if not calls and not finish:
            if self._round == 1:
                self._says = self._says or bool(delta.get("content"))
                self._said = self._said or self._says
                is_said = any(value for key, value in delta.items() if key != "role")
                return rewritten(came) if is_said else self._beginning.held(rewritten(came))
            return self._later(chunk, choice, delta)
        said = {k: v for k, v in delta.items() if k not in calls and k != "role" and v}
        if said:
            # Words beside a call go out at once, the call waits.
            self._held.append(self._rewritten(chunk, choice, {**delta, **dict.fromkeys(said)}))
            live = {k: v for k, v in choice.items() if k != "finish_reason"}
            return self._later(
                chunk, {**live, "finish_reason": None}, {**said, "role": "assistant"}
            )
        self._held.append(self._shown(came, chunk))
        return b""

    def _later(
        self, chunk: dict[str, Json], choice: dict[str, Json], delta: dict[str, Json]
    ) -> bytes:
        """Return a piece of a later round as a piece of the first one's message."""
        left = {k: v for k, v in delta.items() if k != "role" or self._round == 1}
        if not any(v for k, v in left.items() if k != "role"):
            return b""
        content = left.get("content")
        if isinstance(content, str) and content:
            if self._said and not self._says and self._round > 1:
                left = {**left, "content": _BETWEEN + content}
            self._said = self._says = True
        return self._rewritten(chunk, choice, left)

    def _rewritten(
        self, chunk: dict[str, Json], choice: dict[str, Json], delta: dict[str, Json]
    ) -> bytes:
        return event({**chunk, **self._first, "choices": [{**choice, "delta": delta}]})

    def _shown(self, came: ServerSentEvent, chunk: dict[str, Json]) -> bytes:
        return rewritten(came) if self._round == 1 else event({**chunk, **self._first})

    def _chunk(self, delta: dict[str, Json], finish: Json = None) -> bytes:
        made = {k: v for k, v in self._last.items() if k not in ("choices", "usage")}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event({**made, **self._first, "choices": [choice]})


class WholeChat(WholeAnswer):
    """An answer in one piece.

    Args:
        recovery: What reads calls that the model writes as text, where that is to be.
    """

    def __init__(self, recovery: Recovery | None = None) -> None:
        super().__init__(ChatReader, recovery)
        self._messages: list[dict[str, Json]] = []
        self._answer: dict[str, Json] = {}

    def _turn(self, reply: Reply, answer: dict[str, Json]) -> RoundTurn | None:
        choices = answer.get("choices")
        if not is_array(choices) or not choices or not is_object(choices[0]):
            return None
        message = choices[0].get("message")
        if not is_object(message):
            return None
        self._answer = answer
        calls = recovered(self._recovery, reply, _ID_PREFIX)
        self._messages.append({**message, "content": None} if calls else message)
        return called_turn(reply, "", calls) if calls else round_turn(reply)

    def finished(self, handed: Sequence[HandedCall], note: str = "") -> bytes:
        """Return the rounds' answers as one."""
        choice: dict[str, Json] = self._answer["choices"][0]
        message = dict(self._messages[-1])
        said = [text for m in self._messages if isinstance(text := m.get("content"), str) and text]
        said += [note] if note else []
        message["content"] = _BETWEEN.join(said) if said else message.get("content")
        for key in ("reasoning_content", "reasoning"):
            thought = [text for m in self._messages if isinstance(text := m.get(key), str)]
            if thought:
                message[key] = "".join(thought)
        message.pop("tool_calls", None)
        message.pop("function_call", None)
        if handed:
            message["tool_calls"] = [call_record(one) for one in handed]
        finish = finish_reason(choice.get("finish_reason"), handed)
        made = {**choice, "message": message, "finish_reason": finish}
        return sendable({**self._answer, "choices": [made]})

    def broken(self, message: str, status: int = 502, body: bytes = b"") -> bytes:
        """Return an error."""
        return sendable({"error": error_record(message, status, body)})


def error_record(message: str, status: int, body: bytes) -> dict[str, Json]:
    """Return an error as OpenAI's APIs say it; the upstream's own where it has said one.

    Args:
        message: What happened.
        status: What status stands for it.
        body: What the upstream sent.
    """
    own = read_error(body)
    kind = error_kind(status)
    ours = {"type": "server_error" if kind == "api_error" else kind, "param": None, "code": None}
    return {"message": message, **ours, **own}


def finish_reason(came: Json, handed: Sequence[HandedCall]) -> Json:
    """Return why the answer ends, for a client that knows only of the calls it was handed."""
    if handed and came in (None, "stop", "tool_calls", "function_call"):
        return "tool_calls"
    return "stop" if came in (None, "tool_calls", "function_call") else came


def call_record(one: HandedCall) -> dict[str, Json]:
    """Return a call for the client."""
    return _record(one.call, one.name, one.arguments)


def round_turn(reply: Reply) -> RoundTurn:
    """Return what a reply says, as a message of the conversation, too."""
    kept: Mapping[str, Json] = reply.message.native[0] if reply.message.native else {}
    extras: Sequence[Mapping[str, Json]] = kept.get("calls", ())
    calls = tuple(
        ModelCall(
            call.id or f"call_{place}",
            call.name,
            call.arguments,
            extras[place] if place < len(extras) else {},
            place,
        )
        for place, call in enumerate(reply.message.calls)
    )
    own: Mapping[str, Json] = kept.get("message", {})
    message: dict[str, Json] = {
        "role": "assistant",
        "content": reply.message.text or (None if calls else ""),
        **{key: own[key] for key in KEPT if key in own},
    }
    if calls:
        # Servers that read the arguments of old calls refuse a whole request for one that is no
        # object.
        message["tool_calls"] = [
            _record(call, call.name, arguments_text(call.arguments) or "{}") for call in calls
        ]
    text = sendable(message).decode()
    return RoundTurn((text,), calls, reply.message.text, reply.usage, reply.stop in CUT)


def called_turn(reply: Reply, text: str, calls: Sequence[ModelCall]) -> RoundTurn:
    """Return a turn whose calls were written as text, as if they had been made.

    Args:
        reply: The reply.
        text: What of its text is none of a call.
        calls: The calls.
    """
    message: dict[str, Json] = {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [_record(call, call.name, call.arguments) for call in calls],
    }
    return RoundTurn((sendable(message).decode(),), calls, text, reply.usage)


def _record(call: ModelCall, name: str, arguments: str) -> dict[str, Json]:
    function = {"name": name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function, **call.extra}
