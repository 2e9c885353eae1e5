"""OpenAI's chat completions, as most servers speak them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolfold._json_values import sendable
from toolfold.proxy.dialects.chat_answers import ChatStream, WholeChat
from toolfold.proxy.dialects.dialect import AnswerWriter, ClientTurn
from toolfold.proxy.exchange import ProxyDialect
from toolfold.proxy.json_spans import Edit
from toolfold.proxy.lowering import lowered_messages
from toolfold.proxy.offered import Lowered, name_of
from toolfold.proxy.recovery import Recovery
from toolfold.proxy.request import ProxiedRequest
from toolfold.proxy.turns import AnsweredCall, KeptTurn
from toolfold.strategy import FoundForm
from toolfold.tool import Json, ProviderApi, Shape, is_array, is_object

__all__ = ["ChatDialect"]


class ChatDialect:
    """`POST …/chat/completions`."""

    name: ProxyDialect = "openai-chat"
    shape: Shape = "openai-chat"
    items_key = "messages"
    api: ProviderApi | None = None

    def lowered(self, request: ProxiedRequest) -> Lowered:
        """Return the request: this API has no deferral of its own."""
        return lowered_messages(request)

    def why_untouched(self, request: ProxiedRequest) -> str:
        """Return why a request is never folded."""
        count = request.document.get("n")
        return "it asks for several answers" if isinstance(count, int | float) and count > 1 else ""

    def normal(self, item: Json) -> Json:
        """Return a message as it is: clients of this API change nothing about the old ones."""
        return item

    def turns(self, request: ProxiedRequest) -> list[ClientTurn]:
        """Return the assistant's messages."""
        return [
            ClientTurn(place, place + 1, _calls(item.value), text_of(item.value.get("content")))
            for place, item in enumerate(request.items)
            if is_object(item.value) and item.value.get("role") == "assistant"
        ]

    def restored(
        self, request: ProxiedRequest, turn: ClientTurn, kept: KeptTurn
    ) -> list[Edit] | None:
        """Return the edit that puts a message back as the model made it, hidden ones before it."""
        item = request.items[turn.first]
        items = (*kept.before, *kept.turn, *kept.answers)
        return [Edit(item.start, item.end, request.joined(items))]

    def lost(self, request: ProxiedRequest, turn: ClientTurn) -> list[Edit]:
        """Return nothing: a message of this API stands for itself."""
        return []

    def answers(self, answered: Sequence[AnsweredCall], form: FoundForm) -> tuple[str, ...]:
        """Return the messages that answer calls."""
        return tuple(
            sendable(
                {"role": "tool", "tool_call_id": one.call.id, "content": one.answer.text}
            ).decode()
            for one in answered
        )

    def results(self, answers: Sequence[str]) -> tuple[str, ...]:
        """Return the messages as they are."""
        return tuple(answers)

    def writer(
        self,
        request: ProxiedRequest,
        *,
        streamed: bool,
        is_open: Callable[[str], bool],
        recovery: Recovery | None = None,
    ) -> AnswerWriter:
        """Return what reads the upstream's rounds and writes the client's answer."""
        return ChatStream(recovery) if streamed else WholeChat(recovery)

    def error(self, message: str, status: int) -> bytes:
        """Return the body of an error."""
        return sendable({"error": error_of(message, status)})

    def forced(self, request: ProxiedRequest) -> tuple[str, ...]:
        """Return the names of the functions that `tool_choice` names."""
        choice = request.document.get("tool_choice")
        if not is_object(choice):
            return ()
        allowed = choice.get("allowed_tools")
        tools = allowed.get("tools") if is_object(allowed) else None
        return tuple(filter(None, map(name_of, [choice, *(tools if is_array(tools) else ())])))


def error_of(message: str, status: int) -> dict[str, Json]:
    """Return an error as OpenAI's APIs say it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"message": message, "type": kind, "param": None, "code": None}


def text_of(content: Json) -> str:
    """Return the text of a message's content."""
    if isinstance(content, str):
        return content
    parts = content if is_array(content) else []
    texts = (part.get("text") for part in parts if is_object(part))
    return "".join(text for text in texts if isinstance(text, str))


def _calls(message: Mapping[str, Json]) -> tuple[tuple[str, str, Json], ...]:
    calls = message.get("tool_calls")
    return tuple(
        (str(call.get("id") or ""), str(function.get("name")), function.get("arguments"))
        for call in (calls if is_array(calls) else ())
        if is_object(call) and is_object(function := call.get("function"))
    )
