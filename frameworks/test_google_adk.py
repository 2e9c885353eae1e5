"""Google ADK's own runner with three functions, before a model by a script, with 207 tools."""

from __future__ import annotations

from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from three_functions import Ask, check
from world import ModelServer


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        model = LiteLlm(model="openai/any", api_base=server.openai, api_key="key")
        agent = LlmAgent(name="assistant", model=model, tools=functions)
        runner = InMemoryRunner(agent, app_name="test")
        session = await runner.session_service.create_session(app_name="test", user_id="ada")
        said = ""
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for event in runner.run_async(
            user_id="ada", session_id=session.id, new_message=message
        ):
            if event.is_final_response() and event.content and event.content.parts:
                said = event.content.parts[0].text or ""
        return said

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking)
