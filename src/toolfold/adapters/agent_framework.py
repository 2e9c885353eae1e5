"""Microsoft Agent Framework: a chat middleware that folds the tools of an agent, with any client.

It stands around each request to the model. The request lists three tools in place of the folded
ones; a call through them becomes a call of the real tool before the framework reads it, so that
function middleware, approvals and traces are those of the real tool. On the next request the
model reads its own words again.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from copy import copy
from typing import Any, cast

from toolfold.adapters._folding import (
    FoldOptions,
    ScopeOf,
    ShownTool,
    definition,
    missing,
    resolved,
    scope_for,
    shown_tools,
)
from toolfold.answer import Answer, Invocation
from toolfold.fold import Folded
from toolfold.scope import EVERYTHING
from toolfold.search import Ranker
from toolfold.settings import Settings
from toolfold.tool import Json

try:
    from agent_framework import (
        ChatContext,
        ChatMiddleware,
        ChatResponse,
        ChatResponseUpdate,
        Content,
        FunctionTool,
        Message,
        ResponseStream,
    )
except ImportError as error:
    raise missing("Microsoft Agent Framework", "agent-framework") from error

__all__ = ["FoldToolsMiddleware"]


class FoldToolsMiddleware(ChatMiddleware):
    """Middleware that lists three tools where an agent has many.

    Example:
        agent = Agent(client=client, tools=tools, middleware=[FoldToolsMiddleware()])

    Args:
        settings: How to fold. The defaults fold above 10 % of the model's window.
        scope: Which tools exist, for everybody or by the request to the model, as
            `lambda request: scopes[request.session.state["user"]]`.
        core: Names or patterns of tools that are never folded.
        context_length: The model's window, in tokens; by default what is known of its name.
        ranker: How to rank, in place of the settings' choice.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        scope: ScopeOf = EVERYTHING,
        core: Sequence[str] = (),
        context_length: int | None = None,
        ranker: Ranker | None = None,
    ) -> None:
        self._options = FoldOptions(settings, tuple(core), context_length, ranker)
        self._scope = scope

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Show the model the folded list, and read its calls as those of the real tools."""
        options: dict[str, Any] = dict(context.options or {})
        tools: list[Any] = options.get("tools") or []
        own = {
            tool.name: tool
            for tool in tools
            if isinstance(tool, FunctionTool) and not isinstance(tool, _BridgeTool)
        }
        folded = self._options.fold(
            [_record(tool) for tool in own.values()],
            scope=scope_for(self._scope, context),
            model=options.get("model") or getattr(context.client, "model", None),
        )
        listed = [
            _BridgeTool(shown, folded) if shown.is_bridge else own[shown.name]
            for shown in shown_tools(folded)
        ]
        # What a provider runs itself is nobody's to fold.
        hosted = [tool for tool in tools if not isinstance(tool, FunctionTool)]
        if tools:
            context.options = {**options, "tools": [*listed, *hosted]}
        if not folded.active:
            await call_next()
            return
        # The run's own list, in which the framework looks calls up.
        tools[:] = [
            *(tool for tool in tools if not isinstance(tool, _BridgeTool)),
            *(tool for tool in listed if isinstance(tool, _BridgeTool)),
        ]
        told = (options.get("instructions"), folded.guidance)
        instructions = "\n\n".join(text for text in told if text)
        context.options = {**cast("Any", context.options), "instructions": instructions}
        context.messages = [_as_written(message, folded) for message in context.messages]
        await call_next()
        if isinstance(context.result, ResponseStream):
            stream = _streamed(context.result, folded)
            context.result = ResponseStream(stream, finalizer=ChatResponse.from_updates)
        elif context.result is not None:
            for message in context.result.messages:
                message.contents = [await _real(each, folded) for each in message.contents]


class _BridgeTool(FunctionTool):
    """One of the three tools that stand for the folded ones."""

    def __init__(self, shown: ShownTool, folded: Folded) -> None:
        async def answer(**arguments: Any) -> str:
            outcome = await resolved(folded, shown.name, arguments, folded.session)
            if isinstance(outcome, Answer):
                return outcome.text
            return f"Call {outcome.tool.name} directly."

        super().__init__(
            name=shown.name,
            description=shown.description,
            func=answer,
            input_model=shown.parameters,
        )


async def _streamed(stream: Any, folded: Folded) -> AsyncIterator[ChatResponseUpdate]:
    """Yield a reply as it comes, its calls when they are whole."""
    held: list[ChatResponseUpdate] = []
    async for update in stream:
        calls = [each for each in update.contents if each.type == "function_call"]
        if not calls:
            yield update
            continue
        part, rest = copy(update), copy(update)
        part.contents = calls
        rest.contents = [each for each in update.contents if each.type != "function_call"]
        held.append(part)
        if rest.contents:
            yield rest
    if held:
        whole = ChatResponse.from_updates(held)
        made = copy(held[-1])
        made.contents = [
            await _real(each, folded) for message in whole.messages for each in message.contents
        ]
        yield made


def _as_written(message: Message, folded: Folded) -> Message:
    """Return a message with the calls of folded tools as a model makes them."""
    hidden = set(folded.hidden)
    if not any(_is_call(each) and each.name in hidden for each in message.contents):
        return message
    changed = copy(message)
    changed.contents = [
        _bridged(each, folded) if _is_call(each) and each.name in hidden else each
        for each in message.contents
    ]
    return changed


async def _real(content: Content, folded: Folded) -> Content:
    """Return a call of the bridge as one of the real tool, where it comes to that."""
    if not _is_call(content):
        return content
    name = str(content.name)
    if name == folded.bridge.names.call:
        outcome = await resolved(folded, name, _arguments(content), folded.session)
        if not isinstance(outcome, Invocation):
            return content
        return _renamed(content, outcome.tool.name, outcome.arguments)
    if folded.bridge.role(name) is None and name not in folded.catalog:
        # Of a tool that does not exist for the caller, whatever the agent has.
        return _bridged(content, folded)
    return content


def _is_call(content: Content) -> bool:
    return content.type == "function_call"


def _bridged(content: Content, folded: Folded) -> Content:
    given = {"name": content.name, "arguments": _arguments(content)}
    return _renamed(content, folded.bridge.names.call, given)


def _renamed(content: Content, name: str, arguments: Mapping[str, Any]) -> Content:
    changed = copy(content)
    changed.name, changed.arguments = name, json.dumps(dict(arguments), ensure_ascii=False)
    return changed


def _arguments(content: Content) -> Any:
    given = content.arguments
    if not isinstance(given, str):
        return dict(given or {})
    try:
        return json.loads(given or "{}")
    except ValueError:
        return given


def _record(tool: FunctionTool) -> dict[str, Json]:
    return definition(tool.name, tool.description, tool.parameters())
