"""LlamaIndex: an agent whose tools are folded, and its tools as a source of our own doors.

The model is shown three tools in place of the folded ones. A call through them becomes a call of
the real tool before the workflow reads it, so that its events, `return_direct` and waits for a
person are those of the real tool; what the agent remembers is what the model wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from toolfold.sources.calls import Output, PendingCall
from toolfold.sources.registry import Registry, Runner
from toolfold.tool import Json, Tool

try:
    from llama_index.core.agent.workflow import AgentOutput, FunctionAgent
    from llama_index.core.base.llms.types import TextBlock
    from llama_index.core.llms import ChatMessage
    from llama_index.core.llms.llm import ToolSelection
    from llama_index.core.tools import (
        AsyncBaseTool,
        BaseTool,
        ToolMetadata,
        ToolOutput,
        adapt_to_async_tool,
    )
except ImportError as error:
    raise missing("LlamaIndex", "llama-index") from error

__all__ = ["FoldedFunctionAgent", "tool_registry"]

_HANDOFF = "handoff"
"""How one agent of a workflow gives over to another: nobody's to fold or to forbid."""


class FoldedFunctionAgent(FunctionAgent):
    """A function-calling agent whose tools are found by search where they are too many to list.

    Example:
        agent = FoldedFunctionAgent(llm=llm, tools=tools)
        answer = await agent.run("Report that the site is broken.")
    """

    settings: Settings | None = None
    """How to fold. The defaults fold above 10 % of the model's window."""

    scope: Scope = EVERYTHING
    """Which tools exist for whom the agent works."""

    core: Sequence[str] = ()
    """Names or patterns of tools that are never folded."""

    context_length: int | None = None
    """The model's window, in tokens; by default what is known of its name."""

    ranker: Any = None
    """How to rank, a `Ranker`, in place of the settings' choice."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        # Among the tools, where a workflow of several agents looks for them as well; before
        # the others, so that one of theirs with such a name is the one that is meant.
        bridge = [_BridgeTool(self, name) for name in self._options.names]
        self.tools = [*bridge, *(self.tools or ())]

    @property
    def _options(self) -> FoldOptions:
        core = tuple(self.core)
        return FoldOptions(self.settings, core, self.context_length, self._ranker)

    @property
    def _ranker(self) -> Ranker | None:
        return self.ranker

    def fold(self, tools: Iterable[BaseTool]) -> Folded:
        """Return what the model sees of tools now."""
        return self._options.fold(
            [_record(tool) for tool in tools if not _is_aside(tool)],
            scope=self.scope,
            model=self.llm.metadata.model_name,
        )

    async def take_step(
        self,
        ctx: Any,
        llm_input: list[ChatMessage],
        tools: Sequence[AsyncBaseTool],
        memory: Any,
    ) -> AgentOutput:
        """Ask the model with the folded list, and read its calls as those of the real tools."""
        own = {tool.metadata.get_name(): tool for tool in tools if not _is_aside(tool)}
        over = [tool for tool in tools if tool.metadata.get_name() == _HANDOFF]
        folded = self.fold(own.values())
        listed: list[AsyncBaseTool] = [
            _BridgeTool(self, shown.name, shown) if shown.is_bridge else own[shown.name]
            for shown in shown_tools(folded)
        ]
        listed += over
        asked = _guided(llm_input, folded.guidance) if folded.active else llm_input
        output = await super().take_step(ctx, asked, listed, memory)
        if folded.active:
            output.tool_calls = [await _real(call, folded) for call in output.tool_calls]
        return output


def tool_registry(tools: Iterable[BaseTool], name: str = "llama_index") -> Registry:
    """Return LlamaIndex tools as a source.

    Args:
        tools: The tools: functions, query engines, whatever has metadata.
        name: What the source is called.
    """
    registry = Registry(name)
    for tool in tools:
        registry.add(_tool(tool, name), _running(tool))
    return registry


@dataclass
class _Metadata(ToolMetadata):
    """What the model reads of a tool whose parameters are a JSON Schema."""

    parameters: dict[str, Any] = field(default_factory=dict[str, Any])

    def get_parameters_dict(self) -> dict[str, Any]:
        return self.parameters


class _BridgeTool(AsyncBaseTool):
    """One of the three tools that stand for the folded ones."""

    def __init__(
        self, agent: FoldedFunctionAgent, name: str, shown: ShownTool | None = None
    ) -> None:
        self._agent = agent
        self._metadata = _Metadata(
            shown.description if shown else name,
            name,
            parameters=shown.parameters if shown else {"type": "object", "properties": {}},
        )

    @property
    def metadata(self) -> ToolMetadata:
        return self._metadata

    def call(self, *given: Any, **arguments: Any) -> ToolOutput:
        raise NotImplementedError("this tool is asynchronous")

    async def acall(self, *given: Any, **arguments: Any) -> ToolOutput:
        name = self._metadata.get_name()
        folded = self._agent.fold(await self._agent.get_tools(name))
        outcome = await resolved(folded, name, arguments, folded.session)
        is_answer = isinstance(outcome, Answer)
        return ToolOutput(
            tool_name=name,
            content=outcome.text if is_answer else f"Call {outcome.tool.name} directly.",
            raw_input=arguments,
            raw_output=None,
            is_error=not is_answer or outcome.is_error,
        )


def _guided(messages: Sequence[ChatMessage], guidance: str | None) -> list[ChatMessage]:
    told = TextBlock(text=guidance or "")
    if messages and messages[0].role == "system":
        first = messages[0].model_copy(update={"blocks": [*messages[0].blocks, told]})
        return [first, *messages[1:]]
    return [ChatMessage(role="system", blocks=[told]), *messages]


def _is_aside(tool: BaseTool) -> bool:
    return isinstance(tool, _BridgeTool) or tool.metadata.get_name() == _HANDOFF


async def _real(call: ToolSelection, folded: Folded) -> ToolSelection:
    """Return a call of the bridge as one of the real tool, where it comes to that."""
    if call.tool_name == _HANDOFF:
        return call
    if call.tool_name == folded.bridge.names.call:
        outcome = await resolved(folded, call.tool_name, call.tool_kwargs, folded.session)
        if not isinstance(outcome, Invocation):
            return call
        made = {"tool_name": outcome.tool.name, "tool_kwargs": dict(outcome.arguments)}
    elif folded.bridge.role(call.tool_name) is None and call.tool_name not in folded.catalog:
        # Of a tool that does not exist for the caller, whatever the agent has.
        given = {"name": call.tool_name, "arguments": call.tool_kwargs}
        made = {"tool_name": folded.bridge.names.call, "tool_kwargs": given}
    else:
        return call
    return call.model_copy(update=made)


def _record(tool: BaseTool) -> dict[str, Json]:
    metadata = tool.metadata
    return definition(metadata.get_name(), metadata.description, metadata.get_parameters_dict())


def _tool(tool: BaseTool, source: str) -> Tool:
    metadata = tool.metadata
    parameters: dict[str, Any] = metadata.get_parameters_dict()
    return Tool(metadata.get_name(), metadata.description, parameters, source=source)


def _running(tool: BaseTool) -> Runner:
    awaited = adapt_to_async_tool(tool)

    async def run(call: PendingCall) -> Json:
        output = await awaited.acall(**call.arguments)
        return Output(output.content, output.is_error)

    return run
