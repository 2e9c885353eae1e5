"""LlamaIndex's own agent with three functions, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from three_functions import Ask, check
from world import ModelServer

from toolfold import Settings
from toolfold.adapters.llama_index import tool_registry
from toolfold.runtime import Agent, ScriptedModel


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        model = OpenAILike(
            model="any",
            api_base=server.openai,
            api_key="key",
            is_chat_model=True,
            is_function_calling_model=True,
            max_retries=0,
        )
        agent = FunctionAgent(tools=functions, llm=model, streaming=False)
        return str(await agent.run(text))

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking)


def test_its_tools_are_a_source_for_our_own_agent() -> None:
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    def fail() -> str:
        """Fail."""
        raise ValueError("no")

    registry = tool_registry([FunctionTool.from_defaults(add), FunctionTool.from_defaults(fail)])

    async def main() -> tuple[str, bool]:
        agent = Agent(ScriptedModel([]), registry, settings=Settings(enabled="on"))
        done = await agent.call("tool_call", {"name": "add", "arguments": {"a": 2, "b": 3}})
        failed = await agent.call("tool_call", {"name": "fail", "arguments": {}})
        return done.text, failed.is_error

    assert asyncio.run(main()) == ("5", True)
    assert registry.tools()[0].parameters["required"] == ["a"]
