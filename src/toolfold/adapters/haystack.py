"""Haystack: a toolset whose tools are folded, and a generator that shows its model the folded list.

The agent has all tools and three more; its model is shown the open ones and the three. A call
through them becomes a call of the real tool before the agent reads it, so that confirmations,
the agent's state, exit conditions and traces are those of the real tool; on the next step the
model reads its own words again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, cast

from toolfold.adapters._folding import (
    FoldOptions,
    ShownTool,
    definition,
    missing,
    resolved,
    shown_tools,
)
from toolfold.answer import Answer, Invocation
from toolfold.fold import Folded
from toolfold.scope import EVERYTHING, Scope
from toolfold.search import Ranker
from toolfold.settings import Settings
from toolfold.tool import Json

try:
    from haystack import component
    from haystack.core.serialization import component_to_dict, default_from_dict, default_to_dict
    from haystack.dataclasses import ChatMessage, ToolCall
    from haystack.tools import (
        Tool,
        Toolset,
        flatten_tools_or_toolsets,
        warm_up_tools,
        warm_up_tools_async,
    )
    from haystack.utils import deserialize_chatgenerator_inplace
except ImportError as error:
    raise missing("Haystack", "haystack") from error

__all__ = ["FoldedChatGenerator", "FoldedToolset"]

_BRIDGED = "toolfold"
"""Where a call says that it was made through the bridge."""


class FoldedToolset(Toolset):
    """A toolset whose tools are found by search where they are too many to list.

    Example:
        agent = Agent(chat_generator=FoldedChatGenerator(generator), tools=FoldedToolset(tools))

    Args:
        tools: Tools and toolsets.
        settings: How to fold. The defaults fold above 10 % of the model's window.
        scope: Which tools exist; `within` gives another user's.
        core: Names or patterns of tools that are never folded.
        context_length: The model's window, in tokens.
        ranker: How to rank, in place of the settings' choice.
    """

    def __init__(
        self,
        tools: Any,
        settings: Settings | None = None,
        *,
        scope: Scope = EVERYTHING,
        core: Sequence[str] = (),
        context_length: int | None = None,
        ranker: Ranker | None = None,
    ) -> None:
        self._raw = tools
        self._options = FoldOptions(settings, tuple(core), context_length, ranker)
        self._scope = scope
        self._selected: frozenset[str] | None = None
        super().__init__(tools=[])

    def within(self, scope: Scope) -> FoldedToolset:
        """Return the same tools for another user, as `agent.run(…, tools=tools.within(scope))`."""
        other = copy(self)
        other._scope = scope
        return other

    def warm_up(self) -> None:
        """Prepare the tools."""
        warm_up_tools(self._raw)

    async def warm_up_async(self) -> None:
        """Prepare the tools, in an event loop."""
        await warm_up_tools_async(self._raw)

    def spawn(self, selected_tool_names: set[str] | None = None) -> FoldedToolset:
        """Return the toolset of one run, restricted to some names where it is."""
        other = copy(self)
        other._selected = None if selected_tool_names is None else frozenset(selected_tool_names)
        return other

    def get_selectable_tools(self) -> list[Tool]:
        """Return all tools that exist, the folded ones included."""
        return [tool for tool in self if not isinstance(tool, _BridgeTool)]

    def __iter__(self) -> Iterator[Tool]:
        own = [
            tool
            for tool in flatten_tools_or_toolsets(self._raw)
            if self._selected is None or tool.name in self._selected
        ]
        folded = self._options.fold([_record(tool) for tool in own], scope=self._scope)
        yield from (tool for tool in own if tool.name in folded.catalog)
        yield from (_bridge_tool(s, folded) for s in shown_tools(folded) if s.is_bridge)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, index: int) -> Tool:
        return list(self)[index]

    def add(self, tool: Any) -> None:
        """Refuse: the tools are given when the toolset is made."""
        raise NotImplementedError("give all tools to FoldedToolset")


@component
class FoldedChatGenerator:
    """A generator that shows its model the folded list; without a `FoldedToolset`, all there is.

    Args:
        chat_generator: The generator that asks the model.
    """

    def __init__(self, chat_generator: Any) -> None:
        self.chat_generator = chat_generator

    def warm_up(self) -> None:
        """Prepare the generator."""
        _do(self.chat_generator, "warm_up")

    async def warm_up_async(self) -> None:
        """Prepare the generator, in an event loop."""
        waiting = _do(self.chat_generator, "warm_up_async")
        if waiting is None:
            self.warm_up()
        else:
            await waiting

    def close(self) -> None:
        """Release what the generator holds."""
        _do(self.chat_generator, "close")

    def to_dict(self) -> dict[str, Any]:
        """Return the component for a pipeline's file."""
        inner = component_to_dict(self.chat_generator, "chat_generator")
        return default_to_dict(self, chat_generator=inner)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FoldedChatGenerator:
        """Return the component that a pipeline's file holds."""
        deserialize_chatgenerator_inplace(data["init_parameters"], key="chat_generator")
        return default_from_dict(cls, data)

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        streaming_callback: Callable[..., Any] | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: Any = None,
    ) -> dict[str, Any]:
        """Ask the model with the folded list, and read its calls as those of the real tools."""
        listed = flatten_tools_or_toolsets(tools)
        folded = _folded(listed)
        said = _request(messages, listed, folded)
        more = {"streaming_callback": streaming_callback, "generation_kwargs": generation_kwargs}
        reply = self.chat_generator.run(**said, **more)
        if folded is None:
            return reply
        calls = {id: folded.resolve(*call) for id, call in _calls(reply, folded).items()}
        return _read(reply, calls, listed, folded)

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage],
        streaming_callback: Callable[..., Any] | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: Any = None,
    ) -> dict[str, Any]:
        """Do what `run` does, in an event loop."""
        listed = flatten_tools_or_toolsets(tools)
        folded = _folded(listed)
        said = _request(messages, listed, folded)
        more = {"streaming_callback": streaming_callback, "generation_kwargs": generation_kwargs}
        reply = await self.chat_generator.run_async(**said, **more)
        if folded is None:
            return reply
        calls = {
            id: await resolved(folded, *call, folded.session)
            for id, call in _calls(reply, folded).items()
        }
        return _read(reply, calls, listed, folded)


@dataclass
class _BridgeTool(Tool):
    """One of the three tools that stand for the folded ones, with what it answers over."""

    folded: Any = None


def _bridge_tool(shown: ShownTool, folded: Folded) -> _BridgeTool:
    def answer(**arguments: Any) -> str:
        outcome = folded.resolve(shown.name, arguments)
        if isinstance(outcome, Answer):
            return outcome.text
        return f"Call {outcome.tool.name} directly."

    return _BridgeTool(
        shown.name, shown.description, shown.parameters, function=answer, folded=folded
    )


def _do(generator: Any, name: str) -> Any:
    method = getattr(generator, name, None)
    return None if method is None else method()


def _record(tool: Tool) -> dict[str, Json]:
    return definition(tool.name, tool.description, tool.parameters)


def _folded(tools: Sequence[Tool]) -> Folded | None:
    return next((tool.folded for tool in tools if isinstance(tool, _BridgeTool)), None)


def _request(
    messages: Sequence[ChatMessage], tools: Sequence[Tool], folded: Folded | None
) -> dict[str, Any]:
    """Return what the model is asked: what was said, and the tools that it sees."""
    if folded is None:
        return {"messages": list(messages), "tools": list(tools) or None}
    shown = {tool.name for tool in shown_tools(folded)}
    hidden = set(folded.hidden)
    # What stands beside the folded toolset is listed as it is.
    listed = [tool for tool in tools if tool.name in shown or tool.name not in hidden]
    said = [_as_written(message, folded) for message in messages]
    guidance = folded.guidance or ""
    if said and said[0].is_from("system"):
        said[0] = ChatMessage.from_system(f"{said[0].text}\n\n{guidance}", meta=said[0].meta)
    else:
        said.insert(0, ChatMessage.from_system(guidance))
    return {"messages": said, "tools": listed}


def _calls(reply: Mapping[str, Any], folded: Folded) -> dict[int, tuple[str, Any]]:
    """Return the calls of a reply that may be of a folded tool, by their identity."""
    return {
        id(call): (call.tool_name, call.arguments)
        for message in reply["replies"]
        for call in message.tool_calls
        if call.tool_name == folded.bridge.names.call
    }


def _read(
    reply: dict[str, Any],
    calls: Mapping[int, Answer | Invocation],
    tools: Sequence[Tool],
    folded: Folded,
) -> dict[str, Any]:
    return {**reply, "replies": [_real(each, calls, tools, folded) for each in reply["replies"]]}


def _real(
    message: ChatMessage,
    calls: Mapping[int, Answer | Invocation],
    tools: Sequence[Tool],
    folded: Folded,
) -> ChatMessage:
    """Return a reply in which calls through the bridge are those of the real tools."""
    known = {tool.name for tool in tools}

    def part(given: Any) -> Any:
        if not isinstance(given, ToolCall):
            return given
        outcome = calls.get(id(given))
        if isinstance(outcome, Invocation):
            extra = {**(given.extra or {}), _BRIDGED: True}
            arguments = dict(outcome.arguments)
            return replace(given, tool_name=outcome.tool.name, arguments=arguments, extra=extra)
        if given.tool_name not in known:
            # The agent's own answer would name all tools: this one names the nearest.
            made = {"name": given.tool_name, "arguments": given.arguments}
            return replace(given, tool_name=folded.bridge.names.call, arguments=made)
        return given

    return _with_parts(message, part)


def _as_written(message: ChatMessage, folded: Folded) -> ChatMessage:
    """Return a message with the calls that were made through the bridge as the model made them."""
    name = folded.bridge.names.call

    def part(given: Any) -> Any:
        if not isinstance(given, ToolCall) or _BRIDGED not in (given.extra or {}):
            return given
        extra = {key: value for key, value in (given.extra or {}).items() if key != _BRIDGED}
        made = {"name": given.tool_name, "arguments": given.arguments}
        return replace(given, tool_name=name, arguments=made, extra=extra or None)

    return _with_parts(message, part)


def _with_parts(message: ChatMessage, part: Callable[[Any], Any]) -> ChatMessage:
    whole = cast("Any", message)
    parts = [part(each) for each in whole._content]
    if all(new is old for new, old in zip(parts, whole._content, strict=True)):
        return message
    return replace(whole, _content=parts)
