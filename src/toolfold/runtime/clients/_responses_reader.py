"""Replies of `/responses`.

A reply is a list of items: reasoning, messages, calls. They are kept as they came, since
reasoning must go back sealed and a call with its namespace; text and calls are also taken
out for the agent. An item comes in pieces and then whole; servers like OpenAI's leave out
one or the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolfold import prompts
from toolfold._json_values import compact
from toolfold.runtime.clients._endpoint import Piece, Whole
from toolfold.runtime.clients._exchange import ReplyReader, event_json
from toolfold.runtime.clients._failure import Failure, reported
from toolfold.runtime.messages import Call, ModelMessage
from toolfold.runtime.model import Reply, Stop, Usage
from toolfold.tool import Json, is_array, is_object

__all__ = ["NATIVE", "ResponsesReader", "content_text"]

NATIVE = "openai-responses"
"""The type of the one native block of a message: the items of its reply."""

_STOPS: dict[str, Stop] = {"max_output_tokens": "length", "content_filter": "refused"}
_SAID = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.function_call_arguments.delta": "arguments",
    "response.reasoning_summary_text.delta": "thoughts",
    "response.reasoning_text.delta": "thoughts",
}
"""The events that bring a piece of an item, and what it is a piece of."""


@dataclass(slots=True)
class _Item:
    """An item that is being written."""

    raw: dict[str, Json]
    """As it began, or as it is where it is whole."""

    is_whole: bool = False
    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def kind(self) -> str:
        return _text(self.raw.get("type"))

    @property
    def text(self) -> str:
        """What was said in it so far."""
        return "".join(self.pieces.get("text", ()))

    @property
    def is_refusal(self) -> bool:
        return any(part.get("type") == "refusal" for part in _objects(self.raw.get("content")))

    @property
    def is_search(self) -> bool:
        """Whether it is a search that the provider leaves to us."""
        return self.kind == "tool_search_call" and self.raw.get("execution") != "server"

    def call(self, name: str = "") -> Call:
        """Return the call that it is; arguments as they were written where they came as text.

        Args:
            name: What is called, where the item does not say.
        """
        given = self.raw.get("arguments")
        if not isinstance(given, str):
            given = compact(given) if given is not None else ""
        written = given or "".join(self.pieces.get("arguments", ()))
        return Call(_text(self.raw.get("name")) or name, written, _text(self.raw.get("call_id")))


class ResponsesReader(ReplyReader):
    """Puts one reply together.

    Args:
        search: The name of our search, for a search that the provider leaves to us.
    """

    def __init__(self, search: str = prompts.TOOL_SEARCH) -> None:
        super().__init__()
        self._search = search
        self._text: list[str] = []
        self._items: dict[int, _Item] = {}
        self._usage = Usage()
        self._is_completed = False
        self._is_refused = False
        self._reason = ""

    def read(self, piece: Piece) -> str:
        """Take a piece; return the text in it."""
        if isinstance(piece, Whole):
            return self._response(piece.value)
        data = piece.data.strip()
        if not data:
            return ""
        if data.startswith("[DONE]"):  # as servers of the other API end
            self.is_over = True
            return ""
        return self._event(event_json(data), piece.name)

    def reply(self, stop: Stop | None = None) -> Reply:
        """Return the reply as far as it has come."""
        items = [self._items[place] for place in sorted(self._items)]
        calls = tuple(
            item.call(self._search)
            for item in items
            if item.kind == "function_call" or item.is_search
        )
        ended: Stop = _STOPS.get(self._reason) or ("calls" if calls else "end")
        if self._is_refused or any(item.is_refusal for item in items):
            ended = "refused"
        message = ModelMessage("".join(self._text), calls, self._native(items))
        return Reply(message, self._usage, stop or ended)

    def _native(self, items: list[_Item]) -> tuple[Json, ...]:
        # Of a reply that was cut off, items may be half there, and reasoning may not be sealed.
        if not items or not self._is_completed or not all(item.is_whole for item in items):
            return ()
        return ({"type": NATIVE, "output": [item.raw for item in items]},)

    # ---- events

    def _event(self, event: Json, name: str) -> str:
        if not is_object(event):
            raise Failure("a piece of the reply is not an object")
        match _text(event.get("type")) or name:
            case "response.output_item.added":
                self._begun(self._place(event), _object(event.get("item")))
            case "response.output_item.done":
                return self._done(self._place(event), _object(event.get("item")))
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._response(event.get("response"))
            case "error":
                raise reported(event.get("error") or event)
            case kind if kind in _SAID:
                return self._added(event, _SAID[kind])
            case _ if event.get("error"):
                raise reported(event["error"])
            case _:
                return ""  # a state on the way, or something newer than this client
        return ""

    def _response(self, response: Json) -> str:
        """Take a response at its end: what came before, and what nobody sent until now."""
        if not is_object(response):
            raise Failure("the reply is not an object")
        status = _text(response.get("status"))
        if response.get("error") or status in ("failed", "cancelled"):
            raise reported(response.get("error") or f"the response is {status}")
        output = response.get("output")
        if not is_array(output) and not self._items:
            raise Failure("the reply holds no output", hint="check the base URL")
        self._count(response.get("usage"))
        self._reason = _text(_object(response.get("incomplete_details")).get("reason"))
        self._is_completed = status in ("completed", "")
        if status == "incomplete" and self._reason not in _STOPS:
            self._reason = "max_output_tokens"  # whatever it is called: the end is missing
        text = ""
        places = {_text(item.raw.get("id")): place for place, item in self._items.items()}
        places.pop("", None)
        for number, item in enumerate(_objects(output)):
            place = places.get(_text(item.get("id")), number)  # not every server counts alike
            if place not in self._items or not self._items[place].is_whole:
                text += self._done(place, item)
        self.is_ended = self.is_over = self.is_begun = True
        return text

    def _place(self, event: dict[str, Json]) -> int:
        """Return the place of the item that an event is about."""
        place = event.get("output_index")
        if isinstance(place, int):
            return place
        wanted = event.get("item_id") or _object(event.get("item")).get("id")
        same = (i for i, item in self._items.items() if wanted and item.raw.get("id") == wanted)
        if (found := next(same, None)) is not None:
            return found
        last = max(self._items, default=-1)
        return last + 1 if "item" in event or last < 0 else last

    def _begun(self, place: int, raw: dict[str, Json]) -> _Item:
        item = self._items.setdefault(place, _Item(raw))
        self.is_begun = True
        return item

    def _added(self, event: dict[str, Json], what: str) -> str:
        """Take a piece of an item; return it where it is to be shown."""
        item = self._items.get(place := self._place(event)) or self._begun(place, {})
        piece = _text(event.get("delta"))
        if what == "text":
            self._is_refused = self._is_refused or "refusal" in _text(event.get("type"))
            return self._said(item, piece)
        item.pieces.setdefault(what, []).append(piece)
        self._wrote(piece)
        return ""

    def _done(self, place: int, raw: dict[str, Json]) -> str:
        """Take a whole item; return what of its text was not shown."""
        item = self._begun(place, raw)
        item.raw, item.is_whole = raw, True
        if item.kind == "function_call" and not item.pieces:
            self._wrote(item.call().arguments)
        if item.kind != "message":
            return ""
        whole = content_text(raw.get("content"))
        shown = item.text
        return self._said(item, whole[len(shown) :]) if whole.startswith(shown) else ""

    # ---- parts

    def _said(self, item: _Item, piece: str) -> str:
        if not piece:
            return ""
        # What a model says before its work and what it says at last are messages of their own.
        shown = f"\n\n{piece}" if self._text and not item.text else piece
        item.pieces.setdefault("text", []).append(piece)
        self._text.append(shown)
        self._wrote(piece)
        return shown

    def _wrote(self, text: str) -> None:
        self.written += len(text)
        self.is_begun = self.is_begun or bool(text)

    def _count(self, usage: Json) -> None:
        counts = _object(usage)
        details = _object(counts.get("input_tokens_details"))
        self._usage = Usage(
            _number(counts.get("input_tokens")),
            _number(counts.get("output_tokens")),
            _number(details.get("cached_tokens")),
        )


def content_text(content: Json) -> str:
    """Return what a message says: a text, or parts that hold one, as servers like."""
    if isinstance(content, str):
        return content
    return "".join(_text(p.get("text")) or _text(p.get("refusal")) for p in _objects(content))


def _object(value: Json) -> dict[str, Json]:
    return value if is_object(value) else {}


def _objects(value: Json) -> list[dict[str, Json]]:
    return [inner for inner in value if is_object(inner)] if is_array(value) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Json) -> int:
    return value if isinstance(value, int) and value > 0 else 0
