"""Pydantic AI: an `Agent` over a `FunctionModel`, which is how its users script a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conversation import ENDING, NAME, Hold, Plan, serve
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage


def prepare(plan: Plan) -> Hold:
    """Return the conversation as an agent holds it."""
    script: Iterator[list[dict[str, int]]] = iter(())

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        # With the usage given, the model does not guess it from the whole prompt.
        usage = RequestUsage(input_tokens=100, output_tokens=10)
        given = next(script, None)
        if given is None:
            return ModelResponse([TextPart(ENDING)], usage=usage)
        calls = [
            ToolCallPart(NAME, json.dumps(arguments), tool_call_id=f"call_{arguments['a']}")
            for arguments in given
        ]
        return ModelResponse(calls, usage=usage)

    async def unused(**arguments: Any) -> str:
        return "unused"

    others = [
        Tool.from_schema(
            unused,
            name=tool["name"],
            description=tool.get("description") or "",
            json_schema=tool.get("parameters") or {"type": "object", "properties": {}},
        )
        for tool in plan.tools
    ]
    agent = Agent(FunctionModel(model), tools=[*others, Tool(plan.function, takes_ctx=False)])

    async def hold() -> str:
        nonlocal script
        script = iter(plan.replies)
        return (await agent.run("Add the numbers.")).output

    return hold


if __name__ == "__main__":
    serve({"Pydantic AI": prepare})
