"""Haystack's own agent with three functions, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from three_functions import Ask, check
from world import ModelServer


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        generator = OpenAIChatGenerator(
            api_key=Secret.from_token("key"), model="any", api_base_url=server.openai
        )
        agent = Agent(
            chat_generator=generator, tools=[create_tool_from_function(f) for f in functions]
        )
        done = await asyncio.to_thread(agent.run, messages=[ChatMessage.from_user(text)])
        return done["last_message"].text

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking, blocking=True)
