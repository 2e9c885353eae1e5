"""Strands: a plugin that folds the tools of an agent, with any model.

It stands around the model. The request lists three tools in place of the folded ones; a call
through them becomes a call of the real tool in the message that the model wrote, so that hooks,
interrupts and traces are those of the real tool. On the next request the model reads its own
words again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, cast

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

try:
    from strands import Agent
    from strands.middleware import InvokeModelContext, InvokeModelStage, ModelStopReason
    from strands.plugins import Plugin
    from strands.tools.structured_output.structured_output_tool import StructuredOutputTool
    from strands.tools.tools import PythonAgentTool
except ImportError as error:
    raise missing("Strands", "strands") from error

__all__ = ["FoldAgentPlugin"]

_FOLDED = "toolfold"
"""Where the state of an invocation holds what its model was shown."""


class FoldAgentPlugin(Plugin):
    """A plugin that lists three tools where an agent has many.

    Example:
        agent = Agent(model=model, tools=tools, plugins=[FoldAgentPlugin()])

    Args:
        settings: How to fold. The defaults fold above 10 % of the model's window.
        scope: Which tools exist, for everybody or by the request to the model, as
            `lambda request: scopes[request.invocation_state["user"]]`.
        core: Names or patterns of tools that are never folded.
        context_length: The model's window, in tokens; by default what is known of its name.
        ranker: How to rank, in place of the settings' choice.
    """

    @property
    def name(self) -> str:
        """What the plugin is called."""
        return "toolfold"

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        scope: ScopeOf = EVERYTHING,
        core: Sequence[str] = (),
        context_length: int | None = None,
        ranker: Ranker | None = None,
    ) -> None:
        super().__init__()
        self._options = FoldOptions(settings, tuple(core), context_length, ranker)
        self._scope = scope

    def init_agent(self, agent: Agent) -> None:
        """Stand around the agent's model."""
        agent.add_middleware(InvokeModelStage, self._around_the_model)

    async def _around_the_model(
        self, context: InvokeModelContext, ask: Callable[[InvokeModelContext], Any]
    ) -> AsyncGenerator[Any, None]:
        registry = cast("Any", context.agent).tool_registry
        known: dict[str, Any] = registry.registry
        own = {
            spec["name"]: spec
            for spec in context.tool_specs
            if not isinstance(known.get(spec["name"]), _BridgeTool)
        }
        # What the answer is written into is nobody's to fold or to forbid.
        passing: dict[str, Any] = registry.dynamic_tools
        typed = [name for name in own if isinstance(passing.get(name), StructuredOutputTool)]
        last = [own.pop(name) for name in typed]
        folded = self._folded(context, list(own.values()))
        context.invocation_state[_FOLDED] = folded
        for name in folded.bridge.names.all if folded.active else ():
            known.setdefault(name, _BridgeTool(name))
        specs = [
            _spec(shown.name, shown.description, shown.parameters)
            if shown.is_bridge or shown.parameters != _parameters(own[shown.name])
            else own[shown.name]
            for shown in shown_tools(folded)
        ]
        specs += last
        request = context.replace(tool_specs=cast("Any", specs))
        if folded.active:
            request = request.replace(
                messages=[_as_written(message, folded) for message in context.messages],
                system_prompt=_guided(context.system_prompt, folded.guidance or ""),
            )
        async for event in ask(request):
            if isinstance(event, ModelStopReason) and folded.active:
                message = await _real(event.message, folded, typed)
                yield ModelStopReason(event.stop_reason, message, event.usage, event.metrics)
            else:
                yield event

    def _folded(self, context: InvokeModelContext, specs: Sequence[Any]) -> Folded:
        config: Any = context.model.get_config() or {}
        return self._options.fold(
            [definition(s["name"], s["description"], _parameters(s)) for s in specs],
            scope=scope_for(self._scope, context),
            model=config.get("model_id"),
        )


class _BridgeTool(PythonAgentTool):
    """One of the three tools that stand for the folded ones."""

    def __init__(self, name: str) -> None:
        spec = _spec(name, name, {"type": "object", "properties": {}})
        super().__init__(name, cast("Any", spec), self._answer)

    async def _answer(self, tool_use: Any, **state: Any) -> Any:
        folded: Folded = state[_FOLDED]
        outcome = await resolved(folded, self.tool_name, tool_use["input"], folded.session)
        is_answer = isinstance(outcome, Answer)
        text = outcome.text if is_answer else f"Call {outcome.tool.name} directly."
        failed = not is_answer or outcome.is_error
        return {
            "toolUseId": tool_use["toolUseId"],
            "status": "error" if failed else "success",
            "content": [{"text": text}],
        }


def _spec(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"json": dict(parameters)}}


def _parameters(spec: Any) -> dict[str, Any]:
    schema = spec["inputSchema"]
    return schema.get("json", schema)


def _guided(system: Any, guidance: str) -> Any:
    if not system:
        return guidance
    if isinstance(system, str):
        return f"{system}\n\n{guidance}"
    return [*system, {"text": guidance}]


def _with_uses(message: Any, made: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return a message with other names and inputs of some calls, by their ids."""
    content = [
        {**block, "toolUse": {**block["toolUse"], **made[block["toolUse"]["toolUseId"]]}}
        if "toolUse" in block and block["toolUse"]["toolUseId"] in made
        else block
        for block in message["content"]
    ]
    return {**message, "content": content} if made else message


def _uses(message: Any) -> list[Any]:
    return [block["toolUse"] for block in message["content"] if "toolUse" in block]


def _as_written(message: Any, folded: Folded) -> Any:
    """Return a message with the calls of folded tools as a model makes them."""
    hidden = set(folded.hidden)
    return _with_uses(
        message,
        {
            use["toolUseId"]: _bridged(use, folded)
            for use in _uses(message)
            if use["name"] in hidden
        },
    )


async def _real(message: Any, folded: Folded, typed: Sequence[str]) -> Any:
    """Return a reply in which calls through the bridge are those of the real tools."""
    made: dict[str, Mapping[str, Any]] = {}
    for use in _uses(message):
        if use["name"] in typed:
            continue
        if use["name"] == folded.bridge.names.call:
            outcome = await resolved(folded, use["name"], use["input"], folded.session)
            if isinstance(outcome, Invocation):
                real = {"name": outcome.tool.name, "input": dict(outcome.arguments)}
                made[use["toolUseId"]] = real
        elif folded.bridge.role(use["name"]) is None and use["name"] not in folded.catalog:
            # Of a tool that does not exist for the caller, whatever the agent has.
            made[use["toolUseId"]] = _bridged(use, folded)
    return _with_uses(message, made)


def _bridged(use: Any, folded: Folded) -> dict[str, Any]:
    given = {"name": use["name"], "arguments": use["input"]}
    return {"name": folded.bridge.names.call, "input": given}
