"""Strands' own agent with three functions, before a model by a script, with 207 tools."""

from __future__ import annotations

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from three_functions import Ask, check
from world import ModelServer


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        model = OpenAIModel(
            client_args={"base_url": server.openai, "api_key": "key"}, model_id="any"
        )
        agent = Agent(model=model, tools=[tool(each) for each in functions], callback_handler=None)
        return str(await agent.invoke_async(text)).strip()

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking)
