"""OpenAI Agents SDK: `Runner.run` over a `Model` of our own; tracing is off."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    Runner,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from conversation import ENDING, NAME, Hold, Plan, serve
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


class Script(Model):
    """Says what the plan says."""

    def __init__(self) -> None:
        self.script: Iterator[list[dict[str, int]]] = iter(())

    async def get_response(self, *arguments: Any, **named: Any) -> ModelResponse:
        """Return the next reply of the script."""
        given = next(self.script, None)
        usage = Usage(requests=1, input_tokens=100, output_tokens=10, total_tokens=110)
        output = [_ending()] if given is None else [_call(each) for each in given]
        return ModelResponse(output=output, usage=usage, response_id=None)

    def stream_response(self, *arguments: Any, **named: Any) -> AsyncIterator[Any]:
        """Not used."""
        raise NotImplementedError


def _call(arguments: dict[str, int]) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call",
        name=NAME,
        call_id=f"call_{arguments['a']}",
        arguments=json.dumps(arguments),
    )


def _ending() -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text=ENDING, annotations=[])
    return ResponseOutputMessage(
        id="ending", type="message", role="assistant", status="completed", content=[text]
    )


def prepare(plan: Plan) -> Hold:
    """Return the conversation as a runner holds it."""

    async def unused(context: Any, arguments: str) -> str:
        return "unused"

    others = [
        FunctionTool(
            name=tool["name"],
            description=tool.get("description") or "",
            params_json_schema=tool.get("parameters") or {"type": "object", "properties": {}},
            on_invoke_tool=unused,
            strict_json_schema=False,
        )
        for tool in plan.tools
    ]
    model = Script()
    agent = Agent(name="bench", model=model, tools=[*others, function_tool(plan.function)])
    turns = len(plan.replies) + 1

    async def hold() -> str:
        model.script = iter(plan.replies)
        result = await Runner.run(agent, "Add the numbers.", max_turns=turns)
        return str(result.final_output)

    return hold


if __name__ == "__main__":
    set_tracing_disabled(True)
    serve({"OpenAI Agents SDK": prepare})
