"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolfold._json_values import sendable
from toolfold.proxy.dialects.dialect import AnswerWriter, ClientTurn
from toolfold.proxy.dialects.messages_answers import MessageStream, WholeMessage
from toolfold.proxy.exchange import ProxyDialect
from toolfold.proxy.json_spans import Edit, Element, elements, members, separator_of
from toolfold.proxy.lowering import lowered_messages
from toolfold.proxy.offered import Lowered, name_of
from toolfold.proxy.recovery import Recovery
from toolfold.proxy.request import ProxiedRequest
from toolfold.proxy.turns import AnsweredCall, KeptTurn
from toolfold.strategy import FoundForm
from toolfold.tool import Json, ProviderApi, Shape, is_array, is_object

__all__ = ["MessagesDialect"]

_THINKING = frozenset({"thinking", "redacted_thinking"})


class MessagesDialect:
    """`POST …/messages`."""

    name: ProxyDialect = "anthropic-messages"
    shape: Shape = "anthropic"
    items_key = "messages"
    api: ProviderApi | None = "anthropic-messages"

    def lowered(self, request: ProxiedRequest) -> Lowered:
        """Return the request without deferral."""
        return lowered_messages(request)

    def why_untouched(self, request: ProxiedRequest) -> str:
        """Return nothing: every request may be folded."""
        return ""

    def normal(self, item: Json) -> Json:
        """Return a message; a block of text alone as the text.

        A client that marks a text for the cache makes a block of it for the time being.
        """
        content = item.get("content") if is_object(item) else None
        if is_array(content) and len(content) == 1 and is_object(content[0]):
            block = content[0]
            if block.keys() == {"type", "text"} and block["type"] == "text":
                return {**item, "content": block["text"]}
        return item

    def turns(self, request: ProxiedRequest) -> list[ClientTurn]:
        """Return the assistant's messages."""
        return [
            ClientTurn(
                place, place + 1, _calls(item.value.get("content")), _text(item.value["content"])
            )
            for place, item in enumerate(request.items)
            if is_object(item.value)
            and item.value.get("role") == "assistant"
            and "content" in item.value
        ]

    def restored(
        self, request: ProxiedRequest, turn: ClientTurn, kept: KeptTurn
    ) -> list[Edit] | None:
        """Return what puts a message back as the model made it, and answers with the results."""
        item = request.items[turn.first]
        edits = [Edit(item.start, item.end, request.joined((*kept.before, *kept.turn)))]
        if not kept.answers:
            return edits
        if turn.end >= len(request.items):
            answered = self.results(kept.answers)
            return [edits[0]._replace(text=request.joined((edits[0].text, *answered)))]
        blocks = _blocks(request, request.items[turn.end])
        if not blocks or request.items[turn.end].value.get("role") != "user":
            return None
        between = separator_of(request.text, blocks, request.document.separator)
        start = blocks[0].start
        return [*edits, Edit(start, start, between.join((*kept.answers, "")))]

    def lost(self, request: ProxiedRequest, turn: ClientTurn) -> list[Edit]:
        """Return what leaves the thinking of a turn out: it is signed for what is gone."""
        blocks = _blocks(request, request.items[turn.first])
        left = [b for b in blocks if not is_object(b.value) or b.value.get("type") not in _THINKING]
        if len(left) == len(blocks) or not left:
            return []
        between = separator_of(request.text, blocks, request.document.separator)
        text = between.join(block.text(request.text) for block in left)
        return [Edit(blocks[0].start, blocks[-1].end, text)]

    def answers(self, answered: Sequence[AnsweredCall], form: FoundForm) -> tuple[str, ...]:
        """Return the blocks that answer calls."""
        return tuple(sendable(_result(one, form)).decode() for one in answered)

    def results(self, answers: Sequence[str]) -> tuple[str, ...]:
        """Return the message that holds the blocks."""
        return (f'{{"role":"user","content":[{",".join(answers)}]}}',)

    def writer(
        self,
        request: ProxiedRequest,
        *,
        streamed: bool,
        is_open: Callable[[str], bool],
        recovery: Recovery | None = None,
    ) -> AnswerWriter:
        """Return what reads the upstream's rounds and writes the client's answer."""
        if streamed:
            return MessageStream(is_open, recovery)
        return WholeMessage(recovery)

    def error(self, message: str, status: int) -> bytes:
        """Return the body of an error."""
        return sendable({"type": "error", "error": error_of(message, status)})

    def forced(self, request: ProxiedRequest) -> tuple[str, ...]:
        """Return the name of the tool that must be used, if one must."""
        choice = request.document.get("tool_choice")
        return (name,) if (name := name_of(choice)) else ()


def error_of(message: str, status: int) -> dict[str, Json]:
    """Return an error as this API says it."""
    kind = "invalid_request_error" if status < 500 else "api_error"
    return {"type": kind, "message": message}


def _blocks(request: ProxiedRequest, item: Element) -> list[Element]:
    """Return the blocks of a message, with where they stand; none where it is a text."""
    if not is_object(item.value) or not is_array(item.value.get("content")):
        return []
    return elements(request.text, members(request.text, item.start).members["content"].start)


def _result(one: AnsweredCall, form: FoundForm) -> dict[str, Json]:
    content = one.answer.result_content() if form == "tool_reference" else one.answer.text
    result = {"type": "tool_result", "tool_use_id": one.call.id, "content": content}
    return {**result, "is_error": True} if one.answer.is_error else result


def _calls(content: Json) -> tuple[tuple[str, str, Json], ...]:
    return tuple(
        (str(block.get("id") or ""), str(block.get("name")), block.get("input"))
        for block in (content if is_array(content) else ())
        if is_object(block) and block.get("type") == "tool_use"
    )


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    blocks = (block for block in (content if is_array(content) else ()) if is_object(block))
    texts = (block.get("text") for block in blocks if block.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))
