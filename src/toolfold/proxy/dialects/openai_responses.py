"""OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolfold._json_values import sendable
from toolfold.proxy.dialects.dialect import AnswerWriter, ClientTurn
from toolfold.proxy.dialects.openai_chat import error_of, text_of
from toolfold.proxy.dialects.responses_answers import ResponseStream, WholeResponse
from toolfold.proxy.exchange import ProxyDialect
from toolfold.proxy.json_spans import Edit
from toolfold.proxy.lowering import lowered_responses
from toolfold.proxy.offered import Lowered, name_of
from toolfold.proxy.recovery import Recovery
from toolfold.proxy.request import ProxiedRequest
from toolfold.proxy.turns import AnsweredCall, KeptTurn
from toolfold.strategy import FoundForm
from toolfold.tool import Json, ProviderApi, Shape, is_array, is_object

__all__ = ["ResponsesDialect", "is_models"]

_OTHERS = frozenset({"additional_tools", "item_reference", "compaction", "compaction_summary"})
"""What is neither a model's nor a result, whatever it is called."""


class ResponsesDialect:
    """`POST …/responses`."""

    name: ProxyDialect = "openai-responses"
    shape: Shape = "openai-responses"
    items_key = "input"
    api: ProviderApi | None = "openai-responses"

    def lowered(self, request: ProxiedRequest) -> Lowered:
        """Return the request without deferral, namespaces and tools that come in later."""
        return lowered_responses(request)

    def why_untouched(self, request: ProxiedRequest) -> str:
        """Return why a request is never folded."""
        document = request.document
        if document.get("previous_response_id") or document.get("conversation"):
            return "the server holds the conversation"
        return "it is answered in the background" if document.get("background") is True else ""

    def normal(self, item: Json) -> Json:
        """Return an item as it is: clients of this API change nothing about the old ones."""
        return item

    def turns(self, request: ProxiedRequest) -> list[ClientTurn]:
        """Return the runs of items that a model made."""
        turns: list[ClientTurn] = []
        first: int | None = None
        for place, item in enumerate((*(item.value for item in request.items), None)):
            if is_models(item):
                first = place if first is None else first
            elif first is not None:
                run = [item.value for item in request.items[first:place]]
                turns.append(ClientTurn(first, place, _calls(run), "".join(map(_text, run))))
                first = None
        return turns

    def restored(
        self, request: ProxiedRequest, turn: ClientTurn, kept: KeptTurn
    ) -> list[Edit] | None:
        """Return the edit that puts items back as the model made them, hidden ones before."""
        start, end = request.items[turn.first].start, request.items[turn.end - 1].end
        return [Edit(start, end, request.joined((*kept.before, *kept.turn, *kept.answers)))]

    def lost(self, request: ProxiedRequest, turn: ClientTurn) -> list[Edit]:
        """Return what leaves the reasoning of a turn out: it led to calls that are gone."""
        run = request.items[turn.first : turn.end]
        left = [item.value for item in run if item.value.get("type") != "reasoning"]
        if len(left) == len(run) or not left:
            return []
        # An item that is known by its id is refused without the reasoning that led to it.
        texts = [sendable({k: v for k, v in own.items() if k != "id"}).decode() for own in left]
        start, end = request.items[turn.first].start, request.items[turn.end - 1].end
        return [Edit(start, end, request.joined(texts))]

    def answers(self, answered: Sequence[AnsweredCall], form: FoundForm) -> tuple[str, ...]:
        """Return the items that answer calls."""
        return tuple(sendable(item).decode() for one in answered for item in _results(one, form))

    def results(self, answers: Sequence[str]) -> tuple[str, ...]:
        """Return the items as they are."""
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
        is_kept = request.document.get("store") is not False
        if streamed:
            return ResponseStream(is_open, is_kept, recovery)
        return WholeResponse(is_kept, recovery)

    def error(self, message: str, status: int) -> bytes:
        """Return the body of an error."""
        return sendable({"error": error_of(message, status)})

    def forced(self, request: ProxiedRequest) -> tuple[str, ...]:
        """Return the names of the functions that `tool_choice` names."""
        choice = request.document.get("tool_choice")
        tools = choice.get("tools") if is_object(choice) else None
        return tuple(filter(None, map(name_of, [choice, *(tools if is_array(tools) else ())])))


def is_models(item: Json) -> bool:
    """Whether an item of a conversation is one that a model made."""
    if not is_object(item):
        return False
    kind = item.get("type")
    if kind in (None, "message"):
        return item.get("role") == "assistant"
    return (
        isinstance(kind, str) and kind not in _OTHERS and not kind.endswith(("output", "response"))
    )


def _results(one: AnsweredCall, form: FoundForm) -> list[Json]:
    if one.call.is_search and form == "tool_search_output":
        return one.answer.search_output(one.call.id)
    return [{"type": "function_call_output", "call_id": one.call.id, "output": one.answer.text}]


def _calls(run: Sequence[dict[str, Json]]) -> tuple[tuple[str, str, Json], ...]:
    return tuple(
        (str(item.get("call_id") or ""), str(item.get("name")), item.get("arguments"))
        for item in run
        if item.get("type") == "function_call"
    )


def _text(item: dict[str, Json]) -> str:
    return text_of(item.get("content")) if item.get("type") in (None, "message") else ""
