"""The beginning of an exchange: what a client's request is, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolfold.proxy.dialects.anthropic_messages import AnthropicMessages
from toolfold.proxy.dialects.dialect import Dialect
from toolfold.proxy.dialects.openai_chat import OpenAIChat
from toolfold.proxy.dialects.openai_responses import OpenAIResponses
from toolfold.proxy.exchange import ProxyDialect, Refused, Untouched
from toolfold.proxy.folding import ToolsRefusedError, folded_tools
from toolfold.proxy.history import History
from toolfold.proxy.json_spans import UnreadableError
from toolfold.proxy.loop import ROUNDS_AT_MOST, FoldedExchange
from toolfold.proxy.request import ClientRequest
from toolfold.proxy.store import HistoryStore
from toolfold.scope import EVERYTHING, Scope
from toolfold.settings import Settings

__all__ = ["DIALECTS", "open_exchange"]

DIALECTS: Mapping[ProxyDialect, Dialect] = MappingProxyType(
    {
        "openai-chat": OpenAIChat(),
        "openai-responses": OpenAIResponses(),
        "anthropic-messages": AnthropicMessages(),
    }
)
"""How each API is spoken."""


def open_exchange(
    dialect: ProxyDialect,
    body: bytes,
    headers: Mapping[str, str],
    *,
    settings: Settings,
    store: HistoryStore,
    scope: Scope = EVERYTHING,
    host: str = "",
    owner: str = "",
    recover: bool = False,
    context_length: int | None = None,
    rounds_at_most: int = ROUNDS_AT_MOST,
) -> FoldedExchange | Untouched | Refused:
    """Return what becomes of a client's request for an answer.

    Args:
        dialect: What the client and the upstream speak.
        body: The request's body, as it came.
        headers: Its headers, their names in lower case.
        settings: How to fold.
        store: What remembers a conversation between its requests.
        scope: Which of the client's tools exist for this caller.
        host: The upstream's host or address: it may be known to defer tools itself.
        owner: Names the caller where there are several; conversations of two are kept apart.
        recover: Whether a text that is a call of an offered tool is one.
        context_length: The model's window, where that is known.
        rounds_at_most: How often the model may search before its client gets an answer.
    """
    spoken = DIALECTS[dialect]
    try:
        request = ClientRequest.of(body, spoken.items_key)
    except UnreadableError:
        return _unread(spoken, body, scope)
    if not request.tools or not request.has_conversation:
        return Untouched(body)
    try:
        tools = folded_tools(
            request.text,
            request.tools,
            settings=settings,
            scope=scope,
            shape=spoken.shape,
            headers=headers,
            forced=spoken.forced(request.fields),
            model=request.model,
            context_length=context_length,
        )
    except ToolsRefusedError as error:
        return Refused(400, spoken.error(f"toolfold: {error}", 400))
    if tools is None:
        return Untouched(body)
    history = History(spoken, request, store, owner)
    restored = history.restored(tools.is_folded)
    return FoldedExchange(
        spoken,
        request,
        (*restored.edits, request.tools_edit(tools.tools)),
        tools,
        history,
        rounds_at_most=rounds_at_most,
        restored=restored.turns,
    )


def _unread(dialect: Dialect, body: bytes, scope: Scope) -> Untouched | Refused:
    """Return what becomes of a body that cannot be read: nobody knows what tools are in it."""
    if scope.holds_everything:
        return Untouched(body)
    message = "toolfold: the request is not a JSON object that can be read"
    return Refused(400, dialect.error(message, 400))
