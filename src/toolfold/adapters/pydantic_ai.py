"""Pydantic AI: any toolset folded, and this search behind its own `ToolSearch`.

`FoldedToolset` folds one toolset, `FoldTools` all of an agent's: the model sees three tools in
place of the folded ones, with every provider. A call through them runs by the framework's own
tool manager, so that validation, hooks, approvals, retries and spans are those of the real tool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from toolfold.adapters._folding import (
    FoldOptions,
    ScopeOf,
    ShownTool,
    definition,
    missing,
    ranked_names,
    resolved,
    scope_for,
    shown_tools,
)
from toolfold.answer import Answer
from toolfold.fold import Folded
from toolfold.scope import EVERYTHING
from toolfold.search import Ranker
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.tool import Json

try:
    from pydantic import ValidationError
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.exceptions import (
        ApprovalRequired,
        CallDeferred,
        ModelRetry,
        ToolFailed,
        UnexpectedModelBehavior,
    )
    from pydantic_ai.messages import InstructionPart, ModelResponse, ToolCallPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.tools import AgentDepsT, ToolDefinition, ToolDenied
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
    from pydantic_core import SchemaValidator, core_schema
except ImportError as error:
    raise missing("Pydantic AI", "pydantic-ai") from error

__all__ = ["FoldTools", "FoldedToolset", "search_strategy"]

_ANY = SchemaValidator(core_schema.any_schema())
_UNCOUNTED = 1_000_000
"""The retries of the bridge's tools: what counts is each real tool's own budget."""


def search_strategy(
    *,
    limit: int = 5,
    settings: Settings | None = None,
    scope: ScopeOf = EVERYTHING,
    ranker: Ranker | None = None,
) -> Callable[[RunContext[Any], Sequence[str], Sequence[ToolDefinition]], list[str]]:
    """Return this search as a strategy of Pydantic AI's own `ToolSearch`.

    Exact names come first, and where nothing answers a need, nothing is found.

    Example:
        agent = Agent(model, toolsets=[many.defer_loading()],
                      capabilities=[ToolSearch(strategy=search_strategy())])

    Args:
        limit: How many tools each query may find.
        settings: How to search.
        scope: Which of the deferred tools exist for the run.
        ranker: How to rank, in place of the settings' choice.
    """

    def strategy(
        ctx: RunContext[Any], queries: Sequence[str], tools: Sequence[ToolDefinition]
    ) -> list[str]:
        return ranked_names(
            [_record(tool) for tool in tools],
            queries,
            limit=limit,
            settings=settings,
            scope=scope_for(scope, ctx),
            ranker=ranker,
        )

    return strategy


@dataclass
class _Run(Generic[AgentDepsT]):
    """What one run of an agent has done so far."""

    folded: Folded | None = None
    session: Session = field(default_factory=Session)
    inner: dict[str, ToolsetTool[AgentDepsT]] = field(
        default_factory=dict[str, ToolsetTool[AgentDepsT]]
    )
    retries: dict[str, int] = field(default_factory=dict[str, int])
    """How often each real tool was tried again since it last succeeded."""


@dataclass
class FoldedToolset(WrapperToolset[AgentDepsT]):
    """A toolset whose tools are found by search where they are too many to list.

    Example:
        agent = Agent(model, toolsets=[FoldedToolset(MCPToolset(url))])
    """

    settings: Settings | None = None
    """How to fold. The defaults fold above 10 % of the model's window."""

    scope: ScopeOf = EVERYTHING
    """Which tools exist, for everybody or by the run, as `lambda ctx: ctx.deps.scope`."""

    core: Sequence[str] = ()
    """Names or patterns of tools that are never folded."""

    context_length: int | None = None
    """The model's window, in tokens; by default what is known of its name."""

    ranker: Ranker | None = None
    """How to rank, in place of the settings' choice."""

    _run: _Run[AgentDepsT] = field(
        default_factory=_Run[AgentDepsT], init=False, repr=False, compare=False
    )

    @property
    def folded(self) -> Folded | None:
        """What the run's model was last shown; None before the first request."""
        return self._run.folded

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Return the toolset of one run, which shares nothing with others."""
        return replace(self, wrapped=await self.wrapped.for_run(ctx))

    async def for_run_step(self, ctx: RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Return the toolset of the run's next step, which knows what the last ones did."""
        wrapped = await self.wrapped.for_run_step(ctx)
        if wrapped is self.wrapped:
            return self
        stepped = replace(self, wrapped=wrapped)
        stepped._run = self._run
        return stepped

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """Return what the model sees: the open tools, and the bridge where others are folded."""
        inner = await self.wrapped.get_tools(ctx)
        # What is deferred already, or stands for something of the provider's, stays theirs.
        aside = {name: tool for name, tool in inner.items() if _is_aside(tool.tool_def)}
        run = self._run
        run.inner = {name: tool for name, tool in inner.items() if name not in aside}
        folding = FoldOptions(self.settings, tuple(self.core), self.context_length, self.ranker)
        folded = run.folded = folding.fold(
            [_record(tool.tool_def) for tool in run.inner.values()],
            scope=scope_for(self.scope, ctx),
            session=run.session,
            model=ctx.model.model_name,
        )
        shown = {tool.name: self._shown(tool, folded) for tool in shown_tools(folded)}
        return {**shown, **aside}

    def _shown(self, shown: ShownTool, folded: Folded) -> ToolsetTool[AgentDepsT]:
        run = self._run
        if not shown.is_bridge:
            own = run.inner[shown.name]
            if own.tool_def.parameters_json_schema == shown.parameters:
                return own
            stub = replace(own.tool_def, parameters_json_schema=shown.parameters)
            return replace(own, tool_def=stub)
        barrier = any(run.inner[name].tool_def.sequential for name in folded.hidden)
        return ToolsetTool(
            toolset=self,
            tool_def=ToolDefinition(
                name=shown.name,
                description=shown.description,
                parameters_json_schema=shown.parameters,
                strict=False,
                sequential=barrier and shown.name == folded.bridge.names.call,
            ),
            max_retries=_UNCOUNTED,
            args_validator=_ANY,
        )

    async def get_instructions(
        self, ctx: RunContext[AgentDepsT]
    ) -> str | InstructionPart | Sequence[str | InstructionPart] | None:
        """Return the toolset's own instructions, and how folded tools are reached."""
        own = await super().get_instructions(ctx)
        parts = [own] if isinstance(own, str | InstructionPart) else list(own or ())
        folded = self._run.folded
        if folded is not None and folded.guidance:
            parts.append(InstructionPart(folded.guidance))
        return parts or None

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> Any:
        """Answer a call of the bridge, or run the real tool."""
        run = self._run
        folded = run.folded
        if folded is None or folded.bridge.role(name) is None or tool.toolset is not self:
            return await self.wrapped.call_tool(name, tool_args, ctx, run.inner.get(name, tool))
        began = run.session
        outcome = await resolved(folded, name, tool_args, began)
        run.session = run.session.joined(began, outcome.session)
        if isinstance(outcome, Answer):
            if outcome.is_error:
                raise ToolFailed(outcome.text)
            return outcome.text
        return await self._run_real(outcome.tool.name, dict(outcome.arguments), ctx)

    async def _run_real(
        self, name: str, arguments: dict[str, Any], ctx: RunContext[AgentDepsT]
    ) -> Any:
        """Run a folded tool as the framework runs one that was called by its name."""
        run, outer = self._run, ctx.tool_manager
        manager = ToolManager(
            toolset=self.wrapped,
            root_capability=None if outer is None else outer.root_capability,
            ctx=replace(ctx, retries=dict(run.retries)),
            tools=run.inner,
            default_max_retries=1 if outer is None else outer.default_max_retries,
        )
        call = ToolCallPart(name, arguments, tool_call_id=ctx.tool_call_id or "")
        try:
            result = await manager.handle_call(
                call,
                approved=ctx.tool_call_approved,
                metadata=ctx.tool_call_metadata,
                wrap_validation_errors=False,
            )
        except (ApprovalRequired, CallDeferred) as error:
            # Who decides sees what is really called.
            real = {"tool_name": name, "args": arguments}
            raise type(error)(metadata={**real, **(error.metadata or {})}) from error
        except (ModelRetry, ValidationError) as error:
            run.retries[name] = run.retries.get(name, 0) + 1
            most = run.inner[name].max_retries
            if run.retries[name] > most:
                raise UnexpectedModelBehavior(
                    f"Tool {name!r} exceeded max retries count of {most}"
                ) from error
            raise
        run.retries.pop(name, None)
        if isinstance(result, ToolDenied):
            raise ToolFailed(result.message)
        return result


@dataclass
class FoldTools(AbstractCapability[AgentDepsT]):
    """A capability that folds all tools of an agent, and takes calls by name of folded ones.

    Example:
        agent = Agent(model, toolsets=[github, mail], capabilities=[FoldTools()])
    """

    settings: Settings | None = None
    """How to fold. The defaults fold above 10 % of the model's window."""

    scope: ScopeOf = EVERYTHING
    """Which tools exist, for everybody or by the run, as `lambda ctx: ctx.deps.scope`."""

    core: Sequence[str] = ()
    """Names or patterns of tools that are never folded."""

    context_length: int | None = None
    """The model's window, in tokens; by default what is known of its name."""

    ranker: Ranker | None = None
    """How to rank, in place of the settings' choice."""

    def get_ordering(self) -> CapabilityOrdering:
        """Stand outside all others: what they take away or change is so for folded tools, too."""
        return CapabilityOrdering(position="outermost")

    def get_wrapper_toolset(
        self, toolset: AbstractToolset[AgentDepsT]
    ) -> AbstractToolset[AgentDepsT]:
        """Return an agent's toolset, folded."""
        return FoldedToolset(
            toolset, self.settings, self.scope, self.core, self.context_length, self.ranker
        )

    async def after_model_request(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        request_context: ModelRequestContext,
        response: ModelResponse,
    ) -> ModelResponse:
        """Take a call by the name of what is not listed as one through the bridge."""
        listed = {} if ctx.tool_manager is None else ctx.tool_manager.tools or {}
        call = next((name for name, tool in listed.items() if _is_bridge_call(tool)), None)
        if call is None:
            return response
        parts = [
            replace(part, tool_name=call, args={"name": part.tool_name, "arguments": part.args})
            if isinstance(part, ToolCallPart) and part.tool_name not in listed
            else part
            for part in response.parts
        ]
        return response if parts == list(response.parts) else replace(response, parts=parts)


def _is_bridge_call(tool: ToolsetTool[Any]) -> bool:
    folded = tool.toolset.folded if isinstance(tool.toolset, FoldedToolset) else None
    return folded is not None and tool.tool_def.name == folded.bridge.names.call


def _is_aside(tool: ToolDefinition) -> bool:
    return tool.kind == "output" or tool.defer_loading or tool.tool_kind is not None


def _record(tool: ToolDefinition) -> dict[str, Json]:
    said = (tool.metadata or {}).get("annotations")
    annotations = said if isinstance(said, dict) else None
    return definition(
        tool.name, tool.description, tool.parameters_json_schema, annotations=annotations
    )
