"""Other libraries' tool objects: read where they dump a definition, else refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mcp_types
import pytest
from openai.types.chat import ChatCompletionFunctionTool
from openai.types.responses import FunctionTool, WebSearchTool
from pydantic import BaseModel, Field, create_model

from toolfold import fold
from toolfold.errors import InvalidToolError
from toolfold.runtime import Registry

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}


def refused(item: object) -> tuple[str, str | None]:
    with pytest.raises(InvalidToolError) as caught:
        fold([item])
    return caught.value.reason, caught.value.hint


@pytest.mark.parametrize(
    ("item", "shape"),
    [
        (mcp_types.Tool(name="read", input_schema=SCHEMA), "mcp"),
        (
            ChatCompletionFunctionTool.model_validate(
                {"type": "function", "function": {"name": "read", "parameters": SCHEMA}}
            ),
            "openai-chat",
        ),
        (
            FunctionTool(name="read", parameters=SCHEMA, strict=True, type="function"),
            "openai-responses",
        ),
        (
            create_model("Definition", name=(str, "read"), parameters=(dict[str, Any], SCHEMA))(),
            "plain",
        ),
    ],
    ids=lambda item: item if isinstance(item, str) else type(item).__name__,
)
def test_an_object_that_dumps_a_definition_is_read(item: Any, shape: str) -> None:
    tool = fold([item]).catalog["read"]

    assert (tool.shape, tool.parameters) == (shape, SCHEMA)


def test_a_providers_own_tool_of_its_sdk_passes_through() -> None:
    assert fold([WebSearchTool(type="web_search")]).tools == [{"type": "web_search"}]


def langchain(**more: Any) -> Any:
    """Stands for `StructuredTool`: a model whose schema is under a name of its own."""
    fields: dict[str, Any] = {
        "name": (str, "read"),
        "description": (str, "Read a file."),
        "args_schema": (dict[str, Any], SCHEMA),
        **more,
    }
    return create_model("StructuredTool", __module__="langchain_core.tools.structured", **fields)()


def test_a_model_that_holds_its_parameters_elsewhere_is_refused_and_not_read_without_them() -> None:
    fix = "give `convert_to_openai_tool(tool)`, of `langchain_core.utils.function_calling`"

    assert refused(langchain()) == ("'StructuredTool' is a LangChain tool, not a definition", fix)


def test_a_model_that_cannot_be_dumped_is_refused_the_same_way() -> None:
    unwritable = langchain(func=(Any, Field(default=lambda: None)))

    assert refused(unwritable)[0] == "'StructuredTool' is a LangChain tool, not a definition"


def test_a_model_of_nobody_known_is_told_what_to_give() -> None:
    class Action(BaseModel):
        name: str = "read"
        description: str = "Read a file."
        parameters: dict[str, Any] = {"retries": 3}

    fix = "give its definition as a dict, with `name`, `description` and `parameters`"

    assert refused(Action()) == ("'Action' does not hold its parameters where a tool does", fix)
    with pytest.raises(InvalidToolError):
        Registry().add(Action())  # type: ignore[arg-type]


def object_of(package: str, own: str, **attributes: Any) -> Any:
    def call(self: object, *args: Any, **kwargs: Any) -> None: ...

    return type(own, (), {"__module__": package, "__call__": call, **attributes})()


@pytest.mark.parametrize(
    ("item", "kind", "fix"),
    [
        (
            object_of("llama_index.core.tools.function_tool", "FunctionTool", metadata={}),
            "a LlamaIndex tool",
            "give `tool.metadata.to_openai_tool()`",
        ),
        (
            object_of("smolagents.tools", "SimpleTool", name="read", inputs={}),
            "a smolagents tool",
            "give `get_tool_json_schema(tool)`, of `smolagents.models`",
        ),
    ],
    ids=["llama_index", "smolagents"],
)
def test_a_callable_object_that_takes_anything_is_refused(item: Any, kind: str, fix: str) -> None:
    assert refused(item) == (f"{type(item).__name__!r} is {kind}, not a definition", fix)


def test_a_callable_object_that_says_what_it_takes_is_a_function_whatever_it_is_called() -> None:
    class Reader:
        """Read a file."""

        name = "reader"

        def __call__(self, path: str) -> str:
            return path

    assert fold([Reader()]).catalog["Reader"].parameters["required"] == ["path"]


@pytest.mark.parametrize(
    ("package", "attribute", "kind", "fix"),
    [
        ("fastmcp.tools", "to_mcp_tool", "a FastMCP tool", "give `tool.to_mcp_tool()`"),
        (
            "agents.tool",
            "params_json_schema",
            "a tool of the OpenAI Agents SDK",
            'give {"name": tool.name, "description": tool.description, '
            '"parameters": tool.params_json_schema}',
        ),
        (
            "pydantic_ai.tools",
            "tool_def",
            "a Pydantic AI tool",
            'give {"name": tool.name, "description": tool.description, '
            '"parameters": tool.tool_def.parameters_json_schema}',
        ),
        ("haystack.tools.tool", "tool_spec", "a Haystack tool", "give `tool.tool_spec`"),
    ],
)
def test_an_object_that_is_no_tool_is_named_where_its_library_is_known(
    package: str, attribute: str, kind: str, fix: str
) -> None:
    item = type("Tool", (), {"__module__": package, attribute: {}})()

    assert refused(item) == (f"'Tool' is {kind}, not a definition", fix)


def test_a_package_that_only_has_the_name_of_a_library_is_not_taken_for_it() -> None:
    @dataclass
    class Agent:
        name: str

    Agent.__module__ = "agents.team"

    assert refused(Agent("a")) == (
        "'Agent' is not a kind of tool",
        "give a dict, a `Tool` or a Python function",
    )
