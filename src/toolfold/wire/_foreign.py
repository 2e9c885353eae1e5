"""What is some other library's tool and not one of ours: told apart, and named.

Which objects are refused is said by what they hold, never by their class. The names
below only make the refusal say what the object is and how its definition is had.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from toolfold.errors import InvalidToolError

__all__ = ["not_a_tool", "takes_anything"]


class _Framework(NamedTuple):
    package: str
    attribute: str
    """What its tools have, so that a package of the same name is not taken for it."""

    kind: str
    fix: str


_BY_HAND = 'give {{"name": tool.name, "description": tool.description, "parameters": {}}}'
_FRAMEWORKS = (
    _Framework(
        "langchain_core",
        "args_schema",
        "a LangChain tool",
        "give `convert_to_openai_tool(tool)`, of `langchain_core.utils.function_calling`",
    ),
    _Framework(
        "llama_index", "metadata", "a LlamaIndex tool", "give `tool.metadata.to_openai_tool()`"
    ),
    _Framework("fastmcp", "to_mcp_tool", "a FastMCP tool", "give `tool.to_mcp_tool()`"),
    _Framework(
        "agents",
        "params_json_schema",
        "a tool of the OpenAI Agents SDK",
        _BY_HAND.format("tool.params_json_schema"),
    ),
    _Framework(
        "pydantic_ai",
        "tool_def",
        "a Pydantic AI tool",
        _BY_HAND.format("tool.tool_def.parameters_json_schema"),
    ),
    _Framework(
        "smolagents",
        "inputs",
        "a smolagents tool",
        "give `get_tool_json_schema(tool)`, of `smolagents.models`",
    ),
    _Framework("haystack", "tool_spec", "a Haystack tool", "give `tool.tool_spec`"),
)


def takes_anything(item: Any) -> bool:
    """Whether an object calls itself a tool and its call does not say what it takes.

    Its parameters stand somewhere else in it; read as a function it would have none.
    """
    if inspect.isroutine(item) or isinstance(item, type):
        return False
    if not _is_text(item, "name") and not hasattr(item, "metadata"):
        return False
    try:
        kinds = {parameter.kind for parameter in inspect.signature(item).parameters.values()}
    except (TypeError, ValueError):
        return False
    return {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds


def _is_text(item: Any, name: str) -> bool:
    return isinstance(getattr(item, name, None), str)


def not_a_tool(item: object) -> InvalidToolError:
    """Return the error that says what an object is, and what to give instead of it."""
    own = type(item).__name__
    packages = {cls.__module__.partition(".")[0] for cls in type(item).__mro__}
    for known in _FRAMEWORKS:
        if known.package in packages and hasattr(type(item), known.attribute) | (
            known.attribute in getattr(item, "__dict__", {})
        ):
            return InvalidToolError(f"{own!r} is {known.kind}, not a definition", hint=known.fix)
    if hasattr(item, "model_dump") or callable(item):
        return InvalidToolError(
            f"{own!r} does not hold its parameters where a tool does",
            hint="give its definition as a dict, with `name`, `description` and `parameters`",
        )
    return InvalidToolError(
        f"{own!r} is not a kind of tool", hint="give a dict, a `Tool` or a Python function"
    )
