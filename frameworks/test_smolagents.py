"""smolagents' own agent with three functions, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
from typing import Any

from smolagents import OpenAIModel, Tool, ToolCallingAgent
from three_functions import Ask, check
from world import ModelServer, asked


def tool_of(function: Any) -> Tool:
    """Return a function as a tool: smolagents reads the source of those it is to wrap itself."""
    inputs = {
        "tool_search": {"query": {"type": "string", "description": "What you need"}},
        "tool_describe": {"name": {"type": "string", "description": "A name"}},
        "tool_call": {
            "name": {"type": "string", "description": "A name"},
            "arguments": {"type": "object", "description": "Its arguments"},
        },
    }[function.__name__]

    class Made(Tool):
        skip_forward_signature_validation = True
        name = function.__name__
        description = function.__doc__
        output_type = "string"

        def forward(self, **arguments: Any) -> str:
            return function(**arguments)

    Made.inputs = inputs
    return Made()


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        model = OpenAIModel("any", api_base=server.openai, api_key="key")
        agent = ToolCallingAgent(
            tools=[tool_of(f) for f in functions], model=model, verbosity_level=0
        )
        return str(await asyncio.to_thread(agent.run, text))

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking, blocking=True, done=asked(9, "final_answer", answer="Done."))
