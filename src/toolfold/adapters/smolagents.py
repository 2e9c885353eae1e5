"""smolagents: a tool-calling agent whose tools are folded, with any model.

`agent.tools` holds what the model is shown, in the prompts and in the request alike: the open
tools and three more. The others are run by the agent's own `execute_tool_call`, so that state
variables, checks and errors are those of the real tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from toolfold.adapters._folding import FoldOptions, ShownTool, definition, missing, shown_tools
from toolfold.answer import Answer
from toolfold.fold import Folded
from toolfold.scope import EVERYTHING, Scope
from toolfold.search import Ranker
from toolfold.settings import Settings
from toolfold.tool import Json

try:
    from smolagents import Model, Tool, ToolCallingAgent
    from smolagents.models import get_tool_json_schema
    from smolagents.utils import AgentToolCallError
except ImportError as error:
    raise missing("smolagents", "smolagents") from error

__all__ = ["FoldedToolCallingAgent"]

_FINAL = "final_answer"

_JSON_TYPES = frozenset(("string", "boolean", "integer", "number", "array", "object", "null"))


class FoldedToolCallingAgent(ToolCallingAgent):
    """A tool-calling agent whose tools are found by search where they are too many to list.

    Example:
        agent = FoldedToolCallingAgent(tools=tools, model=model)
        answer = agent.run("Report that the site is broken.")

    Args:
        tools: The tools. Those that are added to `agent.tools` later are listed.
        model: The model.
        settings: How to fold. The defaults fold above 10 % of the model's window.
        scope: Which tools exist for whom the agent works.
        core: Names or patterns of tools that are never folded.
        context_length: The model's window, in tokens; by default what is known of its name.
        ranker: How to rank, in place of the settings' choice.
        more: What `ToolCallingAgent` takes.
    """

    def __init__(
        self,
        tools: list[Tool],
        model: Model,
        *,
        settings: Settings | None = None,
        scope: Scope = EVERYTHING,
        core: Sequence[str] = (),
        context_length: int | None = None,
        ranker: Ranker | None = None,
        **more: Any,
    ) -> None:
        self._options = FoldOptions(settings, tuple(core), context_length, ranker)
        self._scope = scope
        super().__init__(tools, model, **more)

    def _setup_tools(self, tools: list[Tool], add_base_tools: bool) -> None:
        super()._setup_tools(tools, add_base_tools)
        own: dict[str, Any] = dict(self.tools)
        # How the agent ends is nobody's to fold or to forbid.
        last = {_FINAL: own.pop(_FINAL)}
        folded = self._options.fold(
            [_record(tool) for tool in own.values()],
            scope=self._scope,
            model=getattr(self.model, "model_id", None),
        )
        self._own, self._folded = own, folded
        self.tools = {
            shown.name: _BridgeTool(shown) if shown.is_bridge else own[shown.name]
            for shown in shown_tools(folded)
        } | last
        if folded.guidance:
            self.instructions = "\n\n".join(filter(None, (self.instructions, folded.guidance)))

    def execute_tool_call(self, tool_name: str, arguments: dict[str, str] | str) -> Any:
        """Answer a call of the bridge, or run the real tool."""
        folded: Folded = self._folded
        known: Mapping[str, Any] = {**self.tools, **self.managed_agents}
        is_bridge = folded.bridge.role(tool_name) is not None
        if not folded.active or (tool_name in known and not is_bridge):
            return super().execute_tool_call(tool_name, arguments)
        outcome = folded.resolve(tool_name, arguments)
        if isinstance(outcome, Answer):
            if outcome.is_error:
                raise AgentToolCallError(outcome.text, self.logger)
            return outcome.text
        # Calls beside each other run in threads: each looks its tool up in a list of its own.
        running, name = copy(self), outcome.tool.name
        running.tools = {name: self._own[name]}
        return ToolCallingAgent.execute_tool_call(running, name, dict(outcome.arguments))


class _BridgeTool(Tool):
    """One of the three tools that stand for the folded ones."""

    name = "tool"
    description = "A tool of the bridge."
    inputs: dict[str, Any] = {}  # noqa: RUF012 - each has its own
    output_type = "string"
    skip_forward_signature_validation = True

    def __init__(self, shown: ShownTool) -> None:
        super().__init__()
        self.name, self.description = shown.name, shown.description
        required = shown.parameters.get("required") or ()
        self.inputs = {
            name: {"description": name, **schema, "nullable": name not in required}
            for name, schema in shown.parameters["properties"].items()
        }

    def forward(self, **arguments: Any) -> str:
        raise NotImplementedError("the agent answers for this tool")


def _record(tool: Any) -> dict[str, Json]:
    parameters = get_tool_json_schema(tool)["function"]["parameters"]
    # Pictures, sounds and the like are passed by the names of state variables.
    properties = {
        name: {
            key: value
            for key, value in schema.items()
            if key != "type" or not isinstance(value, str) or value in _JSON_TYPES
        }
        for name, schema in parameters["properties"].items()
    }
    return definition(tool.name, tool.description, {**parameters, "properties": properties})
