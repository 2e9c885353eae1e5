"""LangChain and LangGraph: a middleware that folds the tools of `create_agent`, with any model.

The model sees three tools in place of the folded ones. A call through them becomes a call of
the real tool in the very message that the model wrote, before anything else reads it: approvals,
limits, traces and the graph's own tool node see the truth, and the model reads its own words
again. What the conversation has found lives in the graph's state, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired, cast

from toolfold.adapters._folding import (
    FoldOptions,
    ScopeOf,
    definition,
    joined_records,
    missing,
    resolved,
    scope_for,
    session_of,
    session_record,
    shown_tools,
)
from toolfold.answer import Answer, Invocation
from toolfold.fold import Folded
from toolfold.scope import EVERYTHING
from toolfold.search import Ranker
from toolfold.settings import Settings
from toolfold.sources.calls import PendingCall
from toolfold.sources.registry import Registry, Runner
from toolfold.tool import Json, Tool

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ExtendedModelResponse, PrivateStateAttr
    from langchain_core.messages import (
        AIMessage,
        AnyMessage,
        BaseMessage,
        SystemMessage,
        ToolMessage,
    )
    from langchain_core.tools import BaseTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command
except ImportError as error:
    raise missing("LangChain", "langchain") from error

__all__ = ["FoldState", "FoldToolsMiddleware", "tool_registry"]

_STATE = "toolfold"
_OFFERED = "offered"
"""Where the state says which tools the model's request was made of."""

_BRIDGED = "toolfold"
"""Where a message says which of its calls were made through the bridge."""

_BLOCKS = {"tool_use": ("id", "input"), "function_call": ("call_id", "arguments")}
"""The blocks in which providers keep a call beside `tool_calls`: its id, and its arguments."""


def _joined(one: dict[str, Any] | None, other: dict[str, Any] | None) -> dict[str, Any]:
    """Return the state after two steps beside each other, or one after the other."""
    one, other = one or {}, other or {}
    if other.keys() == {_OFFERED}:
        return {**one, **other}
    kept = {_OFFERED: one[_OFFERED]} if _OFFERED in one else {}
    return {**joined_records(one, other), **kept}


class FoldState(AgentState[Any]):
    """The state of an agent whose tools are folded."""

    toolfold: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, _joined]]
    """What the conversation has found so far, and among which tools, as JSON."""


class FoldToolsMiddleware(AgentMiddleware[FoldState, Any, Any]):
    """Middleware that lists three tools where an agent has many.

    Example:
        agent = create_agent(model, tools, middleware=[FoldToolsMiddleware()])

    Args:
        settings: How to fold. The defaults fold above 10 % of the model's window.
        scope: Which tools exist, for everybody or by the run, as `lambda r: r.context.scope`.
        core: Names or patterns of tools that are never folded.
        context_length: The model's window, in tokens; by default what is known of it.
        ranker: How to rank, in place of the settings' choice.
    """

    state_schema = FoldState

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
        self.tools = ()
        self._folding = FoldOptions(settings, tuple(core), context_length, ranker)
        self._scope = scope

    # ---- the request to the model, and its reply

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Any],
    ) -> Any:
        """Show the model the folded list, and read its calls as those of the real tools."""
        folded, folded_request = self._request(request)
        reply = handler(folded_request)
        if not folded.active:
            return _offering(reply, folded, request.state)
        calls = {
            id: folded.resolve(name, arguments, session=folded.session)
            for id, name, arguments in _bridged(reply, folded)
        }
        return _offering(_replied(reply, calls), folded, request.state)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[Any]],
    ) -> Any:
        """Do what `wrap_model_call` does, in an event loop."""
        folded, folded_request = self._request(request)
        reply = await handler(folded_request)
        if not folded.active:
            return _offering(reply, folded, request.state)
        calls = {
            id: await resolved(folded, name, arguments, folded.session)
            for id, name, arguments in _bridged(reply, folded)
        }
        return _offering(_replied(reply, calls), folded, request.state)

    def _request(self, request: ModelRequest[Any]) -> tuple[Folded, ModelRequest[Any]]:
        own = [tool for tool in request.tools if isinstance(tool, BaseTool)]
        folded = self._folded(own, request.state, request.runtime, request.model)
        by_name = {tool.name: tool for tool in own}
        listed: list[BaseTool | dict[str, Any]] = []
        for shown in shown_tools(folded):
            tool = None if shown.is_bridge else by_name[shown.name]
            if tool is None or (folded.active and _parameters(tool) != shown.parameters):
                listed.append(_function(shown.name, shown.description, shown.parameters))
            else:
                listed.append(tool)
        # What a provider runs itself is nobody's to fold.
        provided = [tool for tool in request.tools if not isinstance(tool, BaseTool)]
        changed = request.override(tools=[*listed, *provided])
        if not folded.active:
            return folded, changed
        messages = [_as_written(message, folded) for message in request.messages]
        return folded, changed.override(
            messages=cast("list[AnyMessage]", messages),
            system_message=_guided(request.system_message, folded.guidance or ""),
        )

    def _folded(
        self, tools: Sequence[BaseTool], state: Any, runtime: Any, model: Any = None
    ) -> Folded:
        known = cast("Mapping[str, Any]", state) if isinstance(state, Mapping) else {}
        folding = self._folding
        if folding.context_length is None and model is not None:
            profile = getattr(model, "profile", None) or {}
            folding = replace(folding, context_length=profile.get("max_input_tokens"))
        return folding.fold(
            map(_record, tools),
            scope=scope_for(self._scope, runtime),
            session=session_of(known.get(_STATE)),
            model=getattr(model, "model_name", None) or getattr(model, "model", None),
        )

    # ---- the calls

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Answer a call of the bridge, or run the real tool if it exists for the caller."""
        folded, call = self._folded_call(request)
        if _is_open(call["name"], folded):
            return handler(request)
        outcome = folded.resolve(call["name"], call["args"])
        if isinstance(outcome, Answer):
            return _answered(outcome, call)
        return handler(_real(request, outcome))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Do what `wrap_tool_call` does, in an event loop."""
        folded, call = self._folded_call(request)
        if _is_open(call["name"], folded):
            return await handler(request)
        outcome = await resolved(folded, call["name"], call["args"], folded.session)
        if isinstance(outcome, Answer):
            return _answered(outcome, call)
        return await handler(_real(request, outcome))

    def _folded_call(self, request: ToolCallRequest) -> tuple[Folded, dict[str, Any]]:
        known = {tool.name: tool for tool in request.runtime.tools}
        if request.tool is not None:
            known.setdefault(request.tool.name, request.tool)
        record = (request.state or {}).get(_STATE) or {}
        # What another middleware took away from the model's list is not to be found, either.
        if (offered := record.get(_OFFERED)) is not None:
            known = {name: tool for name, tool in known.items() if name in offered}
        # Whatever the gate says now: a call of the bridge was made to a model that saw it.
        settings = replace(self._folding.settings or Settings(), enabled="on")
        folding = replace(self._folding, settings=settings)
        scope = scope_for(self._scope, request.runtime)
        folded = folding.fold(map(_record, known.values()), scope=scope, session=session_of(record))
        return folded, cast("dict[str, Any]", request.tool_call)


def tool_registry(tools: Iterable[BaseTool], name: str = "langchain") -> Registry:
    """Return LangChain tools as a source, for the agent and the gateway of toolfold.

    Args:
        tools: The tools.
        name: What the source is called.
    """

    def running(tool: BaseTool) -> Runner:
        async def run(call: PendingCall) -> Json:
            return await tool.ainvoke(dict(call.arguments))

        return run

    registry = Registry(name)
    for tool in tools:
        own = Tool(tool.name, tool.description, _parameters(tool), source=name)
        registry.add(own, running(tool))
    return registry


def _record(tool: BaseTool) -> dict[str, Json]:
    return definition(tool.name, tool.description, _parameters(tool))


def _parameters(tool: BaseTool) -> dict[str, Any]:
    try:
        return convert_to_openai_tool(tool)["function"].get("parameters") or {}
    except Exception:
        # A schema that cannot be written, of a stranger's server say, is its own tool's loss.
        return dict(tool.args_schema) if isinstance(tool.args_schema, dict) else {}


def _function(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": description, "parameters": dict(parameters)}
    return {"type": "function", "function": function}


def _guided(system: SystemMessage | None, guidance: str) -> SystemMessage:
    if system is None:
        return SystemMessage(guidance)
    if isinstance(system.content, str):
        return system.model_copy(update={"content": f"{system.content}\n\n{guidance}"})
    return system.model_copy(
        update={"content": [*system.content, {"type": "text", "text": guidance}]}
    )


def _messages(reply: Any) -> list[BaseMessage]:
    if isinstance(reply, ExtendedModelResponse):
        reply = reply.model_response
    return list(reply.result) if isinstance(reply, ModelResponse) else [reply]


def _offering(reply: Any, folded: Folded, state: Any) -> Any:
    """Return a reply that puts down which tools were offered, where that is news."""
    offered = [tool.name for tool in folded.catalog]
    known = state.get(_STATE) or {} if isinstance(state, Mapping) else {}
    if known.get(_OFFERED) == offered or not (folded.active or _OFFERED in known):
        return reply
    update = {_STATE: {_OFFERED: offered}}
    if isinstance(reply, AIMessage):
        reply = ModelResponse(result=[reply])
    if isinstance(reply, ExtendedModelResponse):
        return reply  # somebody else's command stands there
    return ExtendedModelResponse(model_response=reply, command=Command(update=update))


def _bridged(reply: Any, folded: Folded) -> list[tuple[str, str, Any]]:
    """Return the calls that may be of a folded tool, through the bridge: id, name, arguments."""
    call = folded.bridge.names.call
    return [
        (str(each["id"]), each["name"], each["args"])
        for message in _messages(reply)
        if isinstance(message, AIMessage)
        for each in message.tool_calls
        if each["name"] == call
    ]


def _replied(reply: Any, calls: Mapping[str, Answer | Invocation]) -> Any:
    """Return a reply in which calls through the bridge are those of the real tools."""
    real = {
        id: (call.tool.name, dict(call.arguments))
        for id, call in calls.items()
        if isinstance(call, Invocation)
    }
    if not real:
        return reply
    if isinstance(reply, ExtendedModelResponse):
        inner = _replied(reply.model_response, calls)
        return replace(reply, model_response=inner)
    if isinstance(reply, ModelResponse):
        return replace(reply, result=[_with_calls(message, real) for message in reply.result])
    return _with_calls(reply, real)


def _with_calls(message: BaseMessage, calls: Mapping[str, tuple[str, dict[str, Any]]]) -> Any:
    if not isinstance(message, AIMessage):
        return message
    own = [str(call["id"]) for call in message.tool_calls if str(call["id"]) in calls]
    changed = _renamed(message, calls)
    metadata = {**message.response_metadata, _BRIDGED: own}
    return changed.model_copy(update={"response_metadata": metadata})


def _as_written(message: BaseMessage, folded: Folded) -> BaseMessage:
    """Return a message as the model wrote it: with the calls that it made through the bridge."""
    if not isinstance(message, AIMessage):
        return message
    ids = message.response_metadata.get(_BRIDGED) or ()
    name = folded.bridge.names.call
    calls = {
        str(call["id"]): (name, {"name": call["name"], "arguments": call["args"]})
        for call in message.tool_calls
        if call["id"] in ids and call["name"] != name
    }
    return _renamed(message, calls) if calls else message


def _renamed(message: AIMessage, calls: Mapping[str, tuple[str, dict[str, Any]]]) -> AIMessage:
    """Return a message with other names and arguments of some calls, by their ids."""

    def block(given: Any) -> Any:
        keys = _BLOCKS.get(given.get("type", "")) if isinstance(given, dict) else None
        found = None if keys is None else calls.get(str(given.get(keys[0])))
        if keys is None or found is None:
            return given
        name, arguments = found
        text = isinstance(given.get(keys[1]), str)
        return {
            **given,
            "name": name,
            keys[1]: json.dumps(arguments, ensure_ascii=False) if text else arguments,
        }

    tool_calls = [
        {**call, "name": calls[str(call["id"])][0], "args": calls[str(call["id"])][1]}
        if str(call["id"]) in calls
        else call
        for call in message.tool_calls
    ]
    content = message.content
    if not isinstance(content, str):
        content = [block(each) for each in content]
    return message.model_copy(update={"tool_calls": tool_calls, "content": content})


def _is_open(name: str, folded: Folded) -> bool:
    """Whether a call is one of a real tool that exists for the caller: the graph's business."""
    return folded.bridge.role(name) is None and name in folded.catalog


def _answered(answer: Answer, call: Mapping[str, Any]) -> Command[Any]:
    message = ToolMessage(
        answer.text,
        name=call["name"],
        tool_call_id=call["id"],
        status="error" if answer.is_error else "success",
    )
    return Command(update={"messages": [message], _STATE: session_record(answer.session)})


def _real(request: ToolCallRequest, call: Invocation) -> ToolCallRequest:
    """Return the request for the real tool of a call."""
    name = call.tool.name
    tool = next((tool for tool in request.runtime.tools if tool.name == name), request.tool)
    real = {**request.tool_call, "name": name, "args": dict(call.arguments)}
    return replace(request, tool_call=cast("Any", real), tool=tool)
