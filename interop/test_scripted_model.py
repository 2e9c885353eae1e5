"""The scripted model, judged by the providers' own libraries: they read what was scripted."""

from __future__ import annotations

from collections.abc import Sequence

import httpx2
import pytest
from anthropic import Anthropic, BadRequestError
from openai import OpenAI
from scripted_model import Asked, Call, Part, Refuse, Reply, Say, ScriptedModel, Think, in_order

ARGUMENTS = {"query": "grüße ✓", "limit": 2}
PARTS: Sequence[Part] = (Think("So it is."), Say("I look."), Call("search", ARGUMENTS))
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(in_order([PARTS, PARTS]))


def test_anthropics_library_reads_messages_streamed_and_whole(model: ScriptedModel) -> None:
    tools = [{"name": "search", "description": "Find.", "input_schema": SCHEMA}]
    given = {"model": "m", "max_tokens": 100, "messages": HELLO, "tools": tools}
    with model, Anthropic(base_url=model.url, api_key="k", max_retries=0) as client:
        with client.messages.stream(**given) as stream:
            streamed = stream.get_final_message()
        whole = client.messages.create(**given)

    for message in (streamed, whole):
        thought, said, called = message.content
        assert (thought.thinking, said.text) == ("So it is.", "I look.")
        assert (called.name, called.input) == ("search", ARGUMENTS)
        assert message.stop_reason == "tool_use"
    assert streamed.id != whole.id
    assert [asked.names for asked in model.asked] == [["search"]] * 2
    assert model.asked[0].body.startswith(b"{")


def test_openais_library_reads_responses_streamed_and_whole(model: ScriptedModel) -> None:
    inner = {"type": "function", "name": "search", "description": "Find.", "parameters": SCHEMA}
    tools = [{"type": "namespace", "name": "box", "description": "", "tools": [inner]}]
    given = {"model": "m", "input": "Hello", "tools": tools}
    with model, OpenAI(base_url=f"{model.url}/v1", api_key="k", max_retries=0) as client:
        with client.responses.stream(**given) as stream:
            streamed = stream.get_final_response()
        whole = client.responses.create(**given)

    for response in (streamed, whole):
        thought, said, called = response.output
        assert thought.summary[0].text == "So it is."
        assert said.content[0].text == "I look."
        assert (called.name, called.arguments) == ("search", '{"query": "grüße ✓", "limit": 2}')
        assert response.status == "completed"
    [tool] = model.asked[0].tools
    assert (tool.namespace, tool.name) == ("box", "search")


def test_openais_library_reads_chat_completions_streamed_and_whole(model: ScriptedModel) -> None:
    function = {"name": "search", "description": "Find.", "parameters": SCHEMA}
    tools = [{"type": "function", "function": function}]
    given = {"model": "m", "messages": HELLO, "tools": tools}
    with model, OpenAI(base_url=f"{model.url}/v1", api_key="k", max_retries=0) as client:
        with client.chat.completions.stream(**given) as stream:
            streamed = stream.get_final_completion()
        whole = client.chat.completions.create(**given)

    for completion in (streamed, whole):
        [choice] = completion.choices
        [called] = choice.message.tool_calls
        assert choice.message.content == "I look."
        assert called.function.name == "search"
        assert called.function.arguments == '{"query": "grüße ✓", "limit": 2}'
        assert choice.finish_reason == "tool_calls"


def test_a_refusal_goes_out_with_its_status_body_and_headers() -> None:
    def play(asked: Asked) -> Reply:
        error = {"type": "invalid_request_error", "message": "defer_loading: not here"}
        return Refuse(400, {"type": "error", "error": error}, {"request-id": "r1"})

    with ScriptedModel(play) as model, Anthropic(base_url=model.url, api_key="k") as client:
        with pytest.raises(BadRequestError, match="defer_loading") as caught:
            client.messages.create(model="m", max_tokens=1, messages=HELLO)
        counted = client.messages.count_tokens(model="m", messages=HELLO)
        unknown = httpx2.get(f"{model.url}/nowhere")

    assert caught.value.response.headers["request-id"] == "r1"
    assert counted.input_tokens == 1000
    assert unknown.status_code == 404
    assert [(heard.method, heard.path) for heard in model.heard] == [
        ("POST", "/v1/messages"),
        ("POST", "/v1/messages/count_tokens"),
        ("GET", "/nowhere"),
    ]
