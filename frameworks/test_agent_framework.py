"""Microsoft's Agent Framework with three functions, before a model by a script, with 207 tools."""

from __future__ import annotations

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from three_functions import Ask, check
from world import ModelServer


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        client = OpenAIChatCompletionClient(model="any", api_key="key", base_url=server.openai)
        agent = Agent(client=client, tools=functions)
        return (await agent.run(text)).text

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking)
