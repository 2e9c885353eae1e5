"""Google ADK: a plugin that folds the tools of every agent of a runner, with any model.

It stands before and behind the model. The request lists three tools in place of the folded
ones; a call through them becomes a call of the real tool before the flow reads it, so that
confirmations, callbacks, authentication and traces are those of the real tool. On the next
request the model reads its own words again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolfold._memo import Memo
from toolfold.adapters._folding import (
    FoldOptions,
    ScopeOf,
    ShownTool,
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
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types
except ImportError as error:
    raise missing("Google ADK", "google-adk") from error

__all__ = ["FoldToolsPlugin"]

_FLOWS_OWN = ("transfer_to_agent", "set_model_response", "finish_task", "exit_loop")
"""What the flow itself lists and listens to: nobody's to fold or to forbid."""

_UNDER_WAY = 4096
"""How many agents may be waiting for their models at once; what was given up leaves by itself."""


class FoldToolsPlugin(BasePlugin):
    """A plugin that lists three tools where an agent has many.

    Example:
        runner = Runner(agent=agent, plugins=[FoldToolsPlugin()], …)

    Args:
        settings: How to fold. The defaults fold above 10 % of the model's window.
        scope: Which tools exist, for everybody or by the call, as
            `lambda ctx: scopes[ctx.user_id]`.
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
        super().__init__(name="toolfold")
        self._options = FoldOptions(settings, tuple(core), context_length, ranker)
        self._scope = scope
        self._folds: Memo[tuple[str, str], tuple[Folded, frozenset[str]]] = Memo(_UNDER_WAY)
        """The fold of each agent under way, and the names that its flow can run."""

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Show the model the folded list."""
        declared = {
            str(declaration.name): declaration
            for tool in llm_request.config.tools or ()
            if isinstance(tool, types.Tool)
            for declaration in tool.function_declarations or ()
        }
        own = {
            name: each
            for name, each in declared.items()
            if name in llm_request.tools_dict and name not in _FLOWS_OWN
        }
        folded = self._options.fold(
            [_record(each) for each in own.values()],
            scope=scope_for(self._scope, callback_context),
            model=llm_request.model,
        )
        for name in own:
            if name not in folded.catalog:
                del llm_request.tools_dict[name]
        shown = shown_tools(folded)
        listed = {tool.name: _declaration(tool, own.get(tool.name)) for tool in shown}
        others = [each for name, each in declared.items() if name not in own]
        _list(llm_request, [*listed.values(), *others])
        for tool in shown:
            if tool.is_bridge:
                llm_request.tools_dict[tool.name] = _BridgeTool(tool, folded)
        self._folds.put(_key(callback_context), (folded, frozenset(llm_request.tools_dict)))
        if folded.active:
            llm_request.append_instructions([folded.guidance or ""])
            llm_request.contents = [_as_written(each, folded) for each in llm_request.contents]
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Read the model's calls as those of the real tools."""
        under_way, content = self._folds.get(_key(callback_context)), llm_response.content
        if under_way is None or content is None or not content.parts:
            return None
        folded, known = under_way
        if not folded.active:
            return None
        parts = [await _real(part, folded, known) for part in content.parts]
        if all(new is old for new, old in zip(parts, content.parts, strict=True)):
            return None
        changed = content.model_copy(update={"parts": parts})
        return llm_response.model_copy(update={"content": changed})


class _BridgeTool(BaseTool):
    """One of the three tools that stand for the folded ones."""

    def __init__(self, shown: ShownTool, folded: Folded) -> None:
        super().__init__(name=shown.name, description=shown.description)
        self._folded = folded

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        outcome = await resolved(self._folded, self.name, args, self._folded.session)
        if isinstance(outcome, Answer):
            return {"error" if outcome.is_error else "result": outcome.text}
        return {"error": f"Call {outcome.tool.name} directly."}


def _key(context: CallbackContext) -> tuple[str, str]:
    return context.invocation_id, context.agent_name


def _record(declaration: types.FunctionDeclaration) -> dict[str, Any]:
    return declaration.model_dump(
        include={"name", "description", "parameters", "parameters_json_schema"},
        exclude_none=True,
        by_alias=True,
        mode="json",
    )


def _declaration(
    shown: ShownTool, own: types.FunctionDeclaration | None
) -> types.FunctionDeclaration:
    if own is not None:
        return own
    return types.FunctionDeclaration(
        name=shown.name, description=shown.description, parameters_json_schema=shown.parameters
    )


def _list(request: LlmRequest, declarations: Sequence[types.FunctionDeclaration]) -> None:
    """Put declarations in the place of those that a request has."""
    kept = [
        tool
        for tool in request.config.tools or ()
        if not (isinstance(tool, types.Tool) and tool.function_declarations)
    ]
    functions = [types.Tool(function_declarations=list(declarations))] if declarations else []
    if request.config.tools is not None or functions:
        request.config.tools = [*functions, *kept]


def _as_written(content: types.Content, folded: Folded) -> types.Content:
    """Return what was said, with the calls of folded tools as a model makes them."""
    hidden, name = set(folded.hidden), folded.bridge.names.call

    def part(given: types.Part) -> types.Part:
        call, answer = given.function_call, given.function_response
        if call is not None and call.name in hidden:
            made = {"name": name, "args": {"name": call.name, "arguments": call.args or {}}}
            return given.model_copy(update={"function_call": call.model_copy(update=made)})
        if answer is not None and answer.name in hidden:
            named = answer.model_copy(update={"name": name})
            return given.model_copy(update={"function_response": named})
        return given

    return content.model_copy(update={"parts": [part(each) for each in content.parts or ()]})


async def _real(part: types.Part, folded: Folded, known: frozenset[str]) -> types.Part:
    """Return a call of the bridge as one of the real tool, where it comes to that."""
    call = part.function_call
    if call is None or call.name is None:
        return part
    made: Mapping[str, Any]
    if call.name == folded.bridge.names.call:
        outcome = await resolved(folded, call.name, call.args or {}, folded.session)
        if not isinstance(outcome, Invocation):
            return part
        made = {"name": outcome.tool.name, "args": dict(outcome.arguments)}
    elif call.name not in known:
        # The flow would raise: this way the model learns which tools there are.
        arguments = {"name": call.name, "arguments": call.args or {}}
        made = {"name": folded.bridge.names.call, "args": arguments}
    else:
        return part
    return part.model_copy(update={"function_call": call.model_copy(update=dict(made))})
