"""Answers of the Responses API: the upstream's rounds read, one response for the client written.

Items go out as they come but for calls that may be ours; those wait until the round is over.
However many rounds there are, the client sees one beginning, items and events counted through,
and one end, which holds all items that it saw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolfold._json_values import sendable
from toolfold.proxy.dialects.answers import CUT, StreamedAnswer, WholeAnswer, recovered
from toolfold.proxy.dialects.chat_answers import error_record
from toolfold.proxy.dialects.events import (
    event,
    is_taken,
    kind_of,
    place_in,
    read_event,
    rewritten,
)
from toolfold.proxy.dialects.held_text import HeldText
from toolfold.proxy.recovery import Recovery
from toolfold.proxy.turns import HandedCall, ModelCall, RoundTurn
from toolfold.runtime.clients._responses_reader import ResponsesReader
from toolfold.runtime.clients._sse import ServerSentEvent
from toolfold.runtime.model import Reply
from toolfold.tool import Json, is_array, is_object

__all__ = ["ResponseStream", "WholeResponse"]

_ID_PREFIX = "call_"
_BEGINNINGS = frozenset({"response.created", "response.in_progress", "response.queued"})
_ENDINGS = frozenset({"response.completed", "response.incomplete"})
_NOT_SENT_BACK = ("id", "status")


class ResponseStream(StreamedAnswer):
    """A streamed answer.

    Args:
        is_open: Whether a call of this name is the client's own business.
        is_kept: Whether the server keeps what it sends.
        recovery: What reads calls that the model writes as text, where that is to be.
    """

    def __init__(
        self, is_open: Callable[[str], bool], is_kept: bool, recovery: Recovery | None = None
    ) -> None:
        super().__init__(ResponsesReader, recovery)
        self._is_open = is_open
        self._is_kept = is_kept
        self._next = 0
        self._sequence = 0
        self._items: dict[int, Json] = {}
        self._ids: list[str] = []
        self._begun: dict[str, Json] = {}
        self.begin()

    def begin(self) -> None:
        """Begin the next round."""
        super().begin()
        self._held: list[tuple[ServerSentEvent, dict[str, Json]]] = []
        self._places: dict[Json, int] = {}
        self._waiting: dict[Json, dict[str, Json]] = {}
        self._out: set[str] = set()
        self._end: tuple[ServerSentEvent, dict[str, Json]] | None = None
        self._gate = None if self._recovery is None else HeldText()

    def _turn(self, reply: Reply) -> RoundTurn:
        calls = recovered(self._recovery, reply, _ID_PREFIX)
        if calls:
            return called_turn(reply, calls)
        held = self._gate.released() if self._gate is not None else ()
        self._rest += b"".join(self._placed(*one) for one in held)
        return round_turn(reply, self._out, is_kept=self._is_kept)

    @property
    def _is_begun(self) -> bool:
        return self._is_ended

    @property
    def _is_ended(self) -> bool:
        return self._end is not None

    @property
    def _holds_calls(self) -> bool:
        return bool(self._waiting)

    def as_it_came(self) -> bytes:
        """Return what was held back of the round."""
        held = b"".join(self._placed(*one) for one in self._held)
        end = self._numbered(*self._end) if self._end else b""
        return self._beginning.ended(self._rest + held + end)

    def finished(self, handed: Sequence[HandedCall], note: str = "") -> bytes:
        """Return the calls for the client, and the end."""
        out = [self._rest]
        if note:
            out.append(self._message(note))
        own = {str(item.get("call_id") or ""): item for item in self._waiting.values()}
        out += [
            self._call(call_item(one, own.get(one.call.id, {})))
            for one in handed
            if not one.call.is_out
        ]
        if self._end is not None:
            came, content = self._end
            last = content.get("response")
            items = [self._items[place] for place in sorted(self._items)]
            own_id = {"id": self._ids[0]} if self._ids else {}
            response = {**(last if is_object(last) else {}), **own_id, "output": items}
            out.append(self._numbered(came, {**content, "response": response}))
        return self._beginning.before(b"".join(out))

    @property
    def alias(self) -> tuple[str, str]:
        """The id that the client was told at the start, and that of the last round."""
        return (self._ids[0], self._ids[-1]) if self._ids else ("", "")

    def broken(self, message: str, status: int = 502, body: bytes = b"") -> bytes:
        """Return the error of an upstream that broke off in mid-stream.

        Some clients read the one event and some the other.
        """
        own = error_record(message, status, body)
        error = {"code": own.get("code") or own["type"], "message": own["message"]}
        said = self._own("error", **error, param=None)
        if not self._begun:
            return said
        items = [self._items[place] for place in sorted(self._items)]
        failed = {**self._begun, "status": "failed", "error": error, "output": items}
        return said + self._own("response.failed", response=failed)

    def _event(self, came: ServerSentEvent) -> bytes:
        content = read_event(came)
        if self._is_foreign or content is None:
            self._is_foreign = self._is_foreign or not came.data.startswith("[DONE]")
            return rewritten(came) if self._round == 1 or self._is_foreign else b""
        if not is_taken(self._reader, came):
            self._is_foreign = True
            return self._numbered(came, content)
        kind = kind_of(came, content)
        if kind == "response.created" and is_object(begun := content.get("response")):
            self._ids.append(str(begun.get("id") or ""))
            self._begun = self._begun or begun
        if kind in _BEGINNINGS:
            if self._round > 1:
                return b""
            return self._beginning.held(self._numbered(came, content))
        if kind in _ENDINGS:
            self._end = (came, content)
            return b""
        return self._item_event(came, content, kind)

    def _item_event(self, came: ServerSentEvent, content: dict[str, Json], kind: str) -> bytes:
        """Return what goes out of an event about an item."""
        index, item = place_in(content, "output_index"), content.get("item")
        if is_object(item) and kind == "response.output_item.added" and self._waits(item):
            self._waiting[index] = item
        if index in self._waiting:
            if is_object(item):
                self._waiting[index] = item
            self._held.append((came, content))
            return b""
        if self._gate is None:
            return self._placed(came, content)
        if _is_message(item):
            self._gate.places.add(index)
        if index not in self._gate.places:
            return self._placed(came, content)
        said = content.get("delta") if kind == "response.output_text.delta" else ""
        held = self._gate.add(said if isinstance(said, str) else "", (came, content))
        return b"".join(self._placed(*one) for one in held)

    def _waits(self, item: dict[str, Json]) -> bool:
        """Whether an item is a call that may be ours."""
        if item.get("type") == "tool_search_call":
            return item.get("execution") != "server"
        if item.get("type") != "function_call":
            return False
        if not self._is_open(str(item.get("name"))):
            return True
        self._out.add(str(item.get("call_id") or ""))
        return False

    def _placed(self, came: ServerSentEvent, content: dict[str, Json]) -> bytes:
        """Return an event with its item's place in the client's response."""
        index = place_in(content, "output_index")
        if index is not None:
            if index not in self._places:
                self._places[index] = self._next
                self._next += 1
            place = self._places[index]
            if "item" in content:
                self._items[place] = content["item"]
            if place != index:
                content = {**content, "output_index": place}
                came = came._replace(data="")
        return self._numbered(came, content)

    def _numbered(self, came: ServerSentEvent, content: dict[str, Json]) -> bytes:
        """Return an event with its place among the client's events."""
        number, self._sequence = self._sequence, self._sequence + 1
        is_same = content.get("sequence_number", number) == number
        if came.data and is_same and read_event(came) == content:
            return rewritten(came)
        if "sequence_number" in content:
            content = {**content, "sequence_number": number}
        return event(content, came.name)

    def _own(self, kind: str, **more: Json) -> bytes:
        number, self._sequence = self._sequence, self._sequence + 1
        return event({"type": kind, "sequence_number": number, **more}, kind)

    def _call(self, item: dict[str, Json]) -> bytes:
        """Return the events of a call."""
        place, self._next = self._next, self._next + 1
        self._items[place] = item
        where = {"output_index": place}
        about = {"item_id": item.get("id") or item["call_id"], **where}
        added = {**item, "arguments": "", "status": "in_progress"}
        arguments: str = item["arguments"]
        said = "response.function_call_arguments"
        return b"".join(
            (
                self._own("response.output_item.added", **where, item=added),
                self._own(f"{said}.delta", **about, delta=arguments),
                self._own(f"{said}.done", **about, arguments=arguments, name=item["name"]),
                self._own("response.output_item.done", **where, item=item),
            )
        )

    def _message(self, text: str) -> bytes:
        """Return the events of a message of our own."""
        place, self._next = self._next, self._next + 1
        item = note_item(text)
        self._items[place] = item
        where = {"output_index": place}
        about = {"item_id": item["id"], **where, "content_index": 0}
        part: Json = item["content"][0]
        empty: dict[str, Json] = {**item, "content": [], "status": "in_progress"}
        return b"".join(
            (
                self._own("response.output_item.added", **where, item=empty),
                self._own("response.content_part.added", **about, part={**part, "text": ""}),
                self._own("response.output_text.delta", **about, delta=text, logprobs=[]),
                self._own("response.output_text.done", **about, text=text, logprobs=[]),
                self._own("response.content_part.done", **about, part=part),
                self._own("response.output_item.done", **where, item=item),
            )
        )


class WholeResponse(WholeAnswer):
    """An answer in one piece.

    Args:
        is_kept: Whether the server keeps what it sends.
        recovery: What reads calls that the model writes as text, where that is to be.
    """

    def __init__(self, is_kept: bool, recovery: Recovery | None = None) -> None:
        super().__init__(ResponsesReader, recovery)
        self._is_kept = is_kept
        self._response: dict[str, Json] = {}
        self._seen: list[Json] = []
        self._output: list[Json] = []

    def begin(self) -> None:
        """Begin the next round: what is no call of this one stays for the client."""
        self._seen += [item for item in self._output if not _is_call(item)]

    def _turn(self, reply: Reply, answer: dict[str, Json]) -> RoundTurn | None:
        output = answer.get("output")
        if not is_array(output):
            return None
        self._response, self._output = answer, output
        calls = recovered(self._recovery, reply, _ID_PREFIX)
        if calls:
            kept = [item for item in output if not _is_message(item)]
            self._output = [*kept, *map(_item, calls)]
            return called_turn(reply, calls)
        return round_turn(reply, frozenset(), is_kept=self._is_kept)

    def finished(self, handed: Sequence[HandedCall], note: str = "") -> bytes:
        """Return the rounds' answers as one."""
        ours = {one.call.id: one for one in handed}
        output: list[Json] = list(self._seen)
        for item in self._output:
            if not _is_call(item):
                output.append(item)
            elif (one := ours.get(str(item.get("call_id") or ""))) is not None:
                output.append(call_item(one, item))
        output += [note_item(note)] if note else []
        return sendable({**self._response, "output": output})

    def broken(self, message: str, status: int = 502, body: bytes = b"") -> bytes:
        """Return an error."""
        return sendable({"error": error_record(message, status, body)})


def call_item(one: HandedCall, own: Mapping[str, Json]) -> dict[str, Json]:
    """Return a call for the client.

    Args:
        one: The call.
        own: The model's item of it.
    """
    kept = {key: value for key, value in own.items() if key != "namespace"}
    item: dict[str, Json] = {
        **kept,
        "type": "function_call",
        "call_id": one.call.id,
        "name": one.name,
        "arguments": one.arguments,
    }
    return {**item, "namespace": one.namespace} if one.namespace else item


def note_item(text: str) -> dict[str, Json]:
    """Return a message of our own."""
    nothing: list[Json] = []
    part = {"type": "output_text", "text": text, "annotations": nothing, "logprobs": nothing}
    return {
        "id": "msg_toolfold",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def round_turn(reply: Reply, out: frozenset[str] | set[str], *, is_kept: bool) -> RoundTurn:
    """Return what a reply says, as items of the conversation, too.

    Args:
        reply: The reply.
        out: The ids of the calls that the client has already.
        is_kept: Whether the server keeps what it sends.
    """
    native: Json = reply.message.native[0] if reply.message.native else {}
    items: list[dict[str, Json]] = [item for item in native.get("output", ()) if is_object(item)]
    spaces = {str(item.get("call_id")): str(item.get("namespace") or "") for item in items}
    searches = {item.get("call_id") for item in items if item.get("type") == "tool_search_call"}
    calls = tuple(
        ModelCall(
            call.id,
            call.name,
            call.arguments,
            place=place,
            is_out=call.id in out,
            is_search=call.id in searches,
            namespace=spaces.get(call.id, ""),
        )
        for place, call in enumerate(reply.message.calls)
    )
    if not items:
        text = reply.message.text
        items = [{"role": "assistant", "content": text}] if text.strip() else []
        items += map(_item, calls)
    elif not is_kept and not all(map(_goes_back, items)):
        items = [_unsealed(item) for item in items if item.get("type") != "reasoning"]
    texts = tuple(sendable(item).decode() for item in items)
    return RoundTurn(texts, calls, reply.message.text, reply.usage, reply.stop in CUT)


def called_turn(reply: Reply, calls: Sequence[ModelCall]) -> RoundTurn:
    """Return a turn whose calls were written as text, as if they had been made."""
    texts = tuple(sendable(_item(call)).decode() for call in calls)
    return RoundTurn(texts, calls, "", reply.usage)


def _item(call: ModelCall) -> dict[str, Json]:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _is_message(item: Json) -> bool:
    return is_object(item) and item.get("type") == "message"


def _goes_back(item: dict[str, Json]) -> bool:
    """Whether an item can go back: reasoning only sealed, or in words."""
    is_there = bool(item.get("encrypted_content")) or bool(item.get("content"))
    return item.get("type") != "reasoning" or is_there


def _unsealed(item: dict[str, Json]) -> dict[str, Json]:
    """Return an item without what ties it to reasoning that cannot go back."""
    return {key: value for key, value in item.items() if key not in _NOT_SENT_BACK}


def _is_call(item: Json) -> bool:
    """Whether an item is a call that may be ours."""
    if not is_object(item):
        return False
    if item.get("type") == "tool_search_call":
        return item.get("execution") != "server"
    return item.get("type") == "function_call"
