"""The OpenAI Agents SDK: an agent whose tools are folded, with any model.

The agent has all its tools and three more; its model is shown the folded list. A call through
the bridge becomes a call of the real tool before the Runner reads it, so that guardrails,
approvals, traces and `tool_use_behavior` are those of the real tool; the model reads its own
words again on the next turn.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from toolfold.adapters._folding import (
    FoldOptions,
    ScopeOf,
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
    from agents import (
        Agent,
        FunctionTool,
        FunctionToolResult,
        Model,
        ModelProvider,
        ModelResponse,
        MultiProvider,
        RunContextWrapper,
        Tool,
        ToolsToFinalOutputResult,
    )
    from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest
    from agents.tool_context import ToolContext
    from openai.types.responses import ResponseFunctionToolCall
except ImportError as error:
    raise missing("the OpenAI Agents SDK", "openai-agents") from error

__all__ = ["FoldedAgent", "FoldedModel"]

TContext = TypeVar("TContext")


@dataclass
class _BridgeTool(FunctionTool):
    """One of the three tools that stand for the folded ones, with what it answers over."""

    folded: Folded | None = field(default=None, kw_only=True, repr=False)


@dataclass
class FoldedAgent(Agent[TContext]):
    """An agent whose tools, MCP servers' included, are found by search where they are too many.

    Example:
        agent = FoldedAgent(name="assistant", tools=tools, mcp_servers=[github])
        result = await Runner.run(agent, "Report that the site is broken.")
    """

    settings: Settings | None = field(default=None, kw_only=True)
    """How to fold. The defaults fold above 10 % of the model's window."""

    scope: ScopeOf = field(default=EVERYTHING, kw_only=True)
    """Which tools exist, for everybody or by the run, as `lambda run: run.context.scope`."""

    core: Sequence[str] = field(default=(), kw_only=True)
    """Names or patterns of tools that are never folded."""

    context_length: int | None = field(default=None, kw_only=True)
    """The model's window, in tokens; by default what is known of its name."""

    ranker: Ranker | None = field(default=None, kw_only=True)
    """How to rank, in place of the settings' choice."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.model, FoldedModel):
            self.model = FoldedModel(self.model)
        if self.tool_use_behavior == "stop_on_first_tool":
            self.tool_use_behavior = _stop_on_first_real_tool

    async def get_all_tools(self, run_context: RunContextWrapper[TContext]) -> list[Tool]:
        """Return the tools that exist in a run, and the bridge where some are folded."""
        tools = await super().get_all_tools(run_context)
        own = [tool for tool in tools if isinstance(tool, FunctionTool)]
        options = FoldOptions(self.settings, tuple(self.core), self.context_length, self.ranker)
        folded = options.fold(
            [_record(tool) for tool in own],
            scope=scope_for(self.scope, run_context),
            model=self.model.name if isinstance(self.model, FoldedModel) else None,
        )
        kept = [t for t in tools if not isinstance(t, FunctionTool) or t.name in folded.catalog]
        return [*kept, *_bridge(folded)]


class FoldedModel(Model):
    """A model that is shown the folded list of a `FoldedAgent`; for others it changes nothing.

    Args:
        model: The model, or its name; None is the SDK's own choice.
        provider: Who knows models by name.
    """

    def __init__(self, model: Model | str | None, provider: ModelProvider | None = None) -> None:
        self.name = model if isinstance(model, str) else getattr(model, "model", None)
        self._model = model if isinstance(model, Model) else None
        self._named = None if isinstance(model, Model) else model
        self._provider = provider

    @property
    def model(self) -> Model:
        """The model behind it."""
        if self._model is None:
            self._model = (self._provider or MultiProvider()).get_model(self._named)
        return self._model

    async def close(self) -> None:
        """Release what the model holds."""
        await self.model.close()

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return what the model says about trying again."""
        return self.model.get_retry_advice(request)

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: list[Tool],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **more: Any,
    ) -> ModelResponse:
        """Ask the model with the folded list, and read its calls as those of the real tools."""
        request = _Request.of(tools, handoffs)
        response = await self.model.get_response(
            request.guided(system_instructions),
            request.as_written(input),
            model_settings,
            request.listed,
            output_schema,
            handoffs,
            tracing,
            **more,
        )
        output = [await request.real(item) for item in response.output]
        return replace(response, output=output)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: list[Tool],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **more: Any,
    ) -> AsyncIterator[Any]:
        """Do what `get_response` does, event by event."""
        request = _Request.of(tools, handoffs)
        events = self.model.stream_response(
            request.guided(system_instructions),
            request.as_written(input),
            model_settings,
            request.listed,
            output_schema,
            handoffs,
            tracing,
            **more,
        )
        async for event in events:
            item, response = getattr(event, "item", None), getattr(event, "response", None)
            if event.type == "response.output_item.done":
                yield event.model_copy(update={"item": await request.real(item)})
            elif response is not None and response.output:
                output = [await request.real(each) for each in response.output]
                changed = response.model_copy(update={"output": output})
                yield event.model_copy(update={"response": changed})
            else:
                yield event


@dataclass(frozen=True)
class _Request:
    """One request to the model: what it lists, and what its calls mean."""

    tools: list[Tool]
    folded: Folded | None
    others: frozenset[str]
    """What else may be called by name: the handoffs."""

    @classmethod
    def of(cls, tools: list[Tool], handoffs: Sequence[Any]) -> _Request:
        folded = next((tool.folded for tool in tools if isinstance(tool, _BridgeTool)), None)
        return cls(tools, folded, frozenset(handoff.tool_name for handoff in handoffs))

    @property
    def listed(self) -> list[Tool]:
        """What the model sees."""
        if self.folded is None:
            return self.tools
        by_name = {tool.name: tool for tool in self.tools}
        listed = [
            by_name[shown.name]
            if shown.is_bridge or _parameters(by_name[shown.name]) == shown.parameters
            else replace(cast("Any", by_name[shown.name]), params_json_schema=shown.parameters)
            for shown in shown_tools(self.folded)
        ]
        return [*listed, *(tool for tool in self.tools if not isinstance(tool, FunctionTool))]

    def guided(self, instructions: str | None) -> str | None:
        """Return the instructions, and how folded tools are reached."""
        guidance = None if self.folded is None else self.folded.guidance
        return "\n\n".join(text for text in (instructions, guidance) if text) or None

    def as_written(self, input: Any) -> Any:
        """Return the conversation with the calls of folded tools as a model makes them."""
        if self.folded is None or isinstance(input, str):
            return input
        hidden, name = set(self.folded.hidden), self.folded.bridge.names.call
        return [
            {**item, "name": name, "arguments": _bridged(item["name"], item["arguments"])}
            if item.get("type") == "function_call" and item.get("name") in hidden
            else item
            for item in input
        ]

    async def real(self, item: Any) -> Any:
        """Return a call of the bridge as one of the real tool, where it comes to that."""
        folded = self.folded
        if folded is None or not isinstance(item, ResponseFunctionToolCall):
            return item
        if item.name == folded.bridge.names.call:
            outcome = await resolved(folded, item.name, item.arguments, folded.session)
            if isinstance(outcome, Invocation):
                arguments = json.dumps(dict(outcome.arguments), ensure_ascii=False)
                return item.model_copy(update={"name": outcome.tool.name, "arguments": arguments})
            return item
        known = {tool.name for tool in self.tools} | self.others
        if item.name in known:
            return item
        # The Runner would end the run: this way the model learns which tools there are.
        bridged = _bridged(item.name, item.arguments)
        return item.model_copy(update={"name": folded.bridge.names.call, "arguments": bridged})


def _bridge(folded: Folded) -> list[Tool]:
    return [
        _BridgeTool(
            name=shown.name,
            description=shown.description,
            params_json_schema=shown.parameters,
            on_invoke_tool=_answering(folded, shown.name),
            strict_json_schema=False,
            folded=folded,
        )
        for shown in shown_tools(folded)
        if shown.is_bridge
    ]


def _answering(folded: Folded, name: str) -> Any:
    async def answer(context: ToolContext[Any], arguments: str) -> str:
        outcome = await resolved(folded, name, arguments, folded.session)
        if isinstance(outcome, Answer):
            return outcome.text
        # Only without a `FoldedModel` before it: what it calls is listed then, too.
        return f"Call {outcome.tool.name} directly."

    return answer


def _stop_on_first_real_tool(
    context: RunContextWrapper[Any], results: list[FunctionToolResult]
) -> ToolsToFinalOutputResult:
    for result in results:
        if not isinstance(result.tool, _BridgeTool):
            return ToolsToFinalOutputResult(is_final_output=True, final_output=result.output)
    return ToolsToFinalOutputResult(is_final_output=False)


def _bridged(name: str, arguments: str) -> str:
    try:
        read = json.loads(arguments or "{}")
    except ValueError:
        read = arguments
    return json.dumps({"name": name, "arguments": read}, ensure_ascii=False)


def _parameters(tool: Tool) -> Mapping[str, Any]:
    return getattr(tool, "params_json_schema", {})


def _record(tool: FunctionTool) -> dict[str, Json]:
    return definition(tool.name, tool.description, tool.params_json_schema)
