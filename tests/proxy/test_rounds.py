"""A folded request over real sockets: searches inside, one answer out, and what may go wrong."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import threading
from typing import Any

import anthropic
import openai
import pytest

from support.model_server import Fails, ModelServer, Raw, Says
from support.proxies import SECONDS, proxied
from toolfold import Settings
from toolfold.dispatch.records import SearchRecord, Silent
from toolfold.dispatch.spans import Spans
from toolfold.runtime.messages import Call

ON = Settings(enabled="on")
SEARCH = Says(calls=(Call("tool_search", '{"query": "send an email"}', "call_1"),))
RUN = Says(
    calls=(Call("tool_call", '{"name": "send_email", "arguments": {"to": "a@b.c"}}', "call_2"),)
)
NAMES = ("send_email", "read_file", "list_issues", "translate_text")
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
}


def schema() -> dict[str, Any]:
    return {"type": "object", "properties": {"to": {"type": "string"}}}


def tools(dialect: str) -> list[dict[str, Any]]:
    about = {name: name.replace("_", " ").capitalize() + "." for name in NAMES}
    match dialect:
        case "openai-chat":
            return [
                {
                    "type": "function",
                    "function": {"name": n, "description": about[n], "parameters": schema()},
                }
                for n in NAMES
            ]
        case "openai-responses":
            return [
                {"type": "function", "name": n, "description": about[n], "parameters": schema()}
                for n in NAMES
            ]
        case _:
            return [{"name": n, "description": about[n], "input_schema": schema()} for n in NAMES]


def request(dialect: str, **more: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": "mail a@b.c"}]
    key = "input" if dialect == "openai-responses" else "messages"
    limit = {"max_tokens": 100} if dialect == "anthropic-messages" else {}
    return {"model": "m", key: said, "tools": tools(dialect), **limit, **more}


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_search_is_answered_inside_and_the_real_call_goes_to_the_client(
    dialect: str, stream: bool
) -> None:
    with ModelServer(SEARCH, RUN) as model, proxied(model.url, settings=ON) as proxy:
        headers = {"accept-encoding": "gzip"}
        reply = proxy.ask(PATHS[dialect], request(dialect, stream=stream), headers)
        record = proxy.seen.one()
    assert reply.status == 200
    assert b"send_email" in reply.body
    assert b"a@b.c" in reply.body
    assert b"tool_search" not in reply.body
    assert b"tool_call" not in reply.body.replace(b"tool_calls", b"")
    assert len(model.requests) == 2
    assert all(each.headers["accept-encoding"] == "identity" for each in model.requests)
    sent = [
        tool.get("name") or tool["function"]["name"] for tool in model.requests[0].body["tools"]
    ]
    assert sent == ["tool_search", "tool_describe", "tool_call"]
    assert (record.outcome, record.rounds, record.searches, record.calls) == ("folded", 2, 1, 1)
    assert (record.dialect, record.model, record.tools) == (dialect, "m", 4)
    assert record.tokens_before > 0
    assert record.first is not None
    assert 0 < record.added <= record.seconds


async def _sdk(dialect: str, url: str) -> str:
    if dialect == "anthropic-messages":
        async with (
            anthropic.AsyncAnthropic(base_url=url, api_key="key", max_retries=0) as claude,
            claude.messages.stream(**request(dialect)) as stream,
        ):
            message = await stream.get_final_message()
        (block,) = [b for b in message.content if b.type == "tool_use"]
        return f"{block.name} {json.dumps(block.input)} {message.stop_reason}"
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="key", max_retries=0) as client:
        if dialect == "openai-responses":
            async with client.responses.stream(**request(dialect)) as stream:
                response = await stream.get_final_response()
            (item,) = [i for i in response.output if i.type == "function_call"]
            return f"{item.name} {item.arguments} {response.status}"
        async with client.chat.completions.stream(**request(dialect)) as stream:
            completion = await stream.get_final_completion()
        (call,) = completion.choices[0].message.tool_calls or []
        return (
            f"{call.function.name} {call.function.arguments} {completion.choices[0].finish_reason}"
        )


@pytest.mark.parametrize("dialect", PATHS)
def test_an_sdks_streaming_helper_ends_the_same_with_and_without_the_proxy(dialect: str) -> None:
    direct = Says(calls=(Call("send_email", '{"to": "a@b.c"}', "call_9"),))
    with ModelServer(direct) as model:
        without = asyncio.run(_sdk(dialect, model.url))
    with ModelServer(SEARCH, RUN) as model, proxied(model.url, settings=ON) as proxy:
        through = asyncio.run(_sdk(dialect, proxy.url))
    assert through.replace(": ", ":") == without.replace(": ", ":")


@pytest.mark.parametrize("dialect", PATHS)
def test_a_later_round_that_is_refused_before_anything_was_said_keeps_its_status(
    dialect: str,
) -> None:
    refusal = Fails(429, "slow down", {"retry-after": "3"}, "rate_limit_error")
    with ModelServer(SEARCH, refusal) as model, proxied(model.url, settings=ON) as proxy:
        reply = proxy.ask(PATHS[dialect], request(dialect))
        assert proxy.seen.one().outcome == "failed"
    assert (reply.status, reply.headers["retry-after"]) == (429, "3")
    assert b"slow down" in reply.body


@pytest.mark.parametrize("dialect", PATHS)
def test_a_later_round_that_is_refused_after_a_text_ends_the_stream_with_an_error(
    dialect: str,
) -> None:
    spoken = Says("Let me look. " * 3, SEARCH.calls)
    refusal = Fails(529, "too busy", {}, "overloaded_error")
    with ModelServer(spoken, refusal) as model, proxied(model.url, settings=ON) as proxy:
        reply = proxy.ask(PATHS[dialect], request(dialect, stream=True))
    assert reply.status == 200
    assert reply.body.count(b"too busy") == 1
    assert b"error" in reply.body.rsplit(b"\n\n", 2)[1]


@pytest.mark.parametrize("dialect", PATHS)
def test_an_upstream_that_dies_in_mid_stream_is_an_error_of_the_dialect(dialect: str) -> None:
    def dies(received: Any) -> Raw:
        with ModelServer(Says("Let me look at that for you.")) as other:
            whole = _ask_plain(other.url, PATHS[dialect], received.raw)
        events = whole.split(b"\n\n")
        return Raw([event + b"\n\n" for event in events[:6]], then="break")

    with ModelServer(dies) as model, proxied(model.url, settings=ON) as proxy:
        reply = proxy.ask(PATHS[dialect], request(dialect, stream=True))
        record = proxy.seen.one()
    assert record.outcome == "failed"
    assert b"broke the connection off" in reply.body
    assert b"error" in reply.body.rsplit(b"\n\n", 2)[1]


def _ask_plain(url: str, path: str, body: bytes) -> bytes:
    from support.proxies import ask

    return ask(url, path, body).body


@pytest.mark.parametrize("dialect", PATHS)
def test_a_client_that_leaves_in_a_later_round_ends_the_upstreams_work(dialect: str) -> None:
    silent = Raw(is_silent=True, then="hold")
    spoken = Says("Let me look. " * 3, SEARCH.calls)
    with ModelServer(spoken, silent) as model, proxied(model.url, settings=ON) as proxy:
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=SECONDS)
        connection.request("POST", PATHS[dialect], json.dumps(request(dialect, stream=True)))
        connection.getresponse().read1(10)
        model.wait_for(2)
        connection.close()
        assert model.gone.wait(SECONDS)
        assert proxy.seen.one().outcome == "cancelled"


@pytest.mark.parametrize("dialect", PATHS)
def test_a_client_hears_that_work_goes_on_while_the_upstream_thinks(dialect: str) -> None:
    """The second round is held until the client has heard something of the wait."""
    heard = threading.Event()

    def waits(received: Any) -> Says:
        assert heard.wait(SECONDS)
        return RUN

    with (
        ModelServer(SEARCH, waits) as model,
        proxied(model.url, settings=ON, keep_alive=0.05) as proxy,
    ):
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=SECONDS)
        connection.request("POST", PATHS[dialect], json.dumps(request(dialect, stream=True)))
        # A model that waits blocks its server's loop, so nothing else wakes the proxy.
        response = connection.getresponse()
        first = response.read1(100)
        heard.set()
        rest = response.read()
        connection.close()
    assert first
    assert b"send_email" not in first
    assert b"send_email" in rest


def test_an_upstream_that_compresses_all_the_same_is_read() -> None:
    with ModelServer(Says("Fine.")) as plain:
        body = _ask_plain(
            plain.url, PATHS["openai-chat"], json.dumps(request("openai-chat")).encode()
        )
    packed = Raw(
        [gzip.compress(body)], 200, {"content-type": "application/json", "content-encoding": "gzip"}
    )
    with ModelServer(packed) as model, proxied(model.url, settings=ON) as proxy:
        reply = proxy.ask(PATHS["openai-chat"], request("openai-chat"))
    assert reply.json["choices"][0]["message"]["content"] == "Fine."
    assert "content-encoding" not in reply.headers


@pytest.mark.parametrize("dialect", PATHS)
def test_an_answer_beyond_the_limit_is_an_error(dialect: str) -> None:
    with (
        ModelServer(Says("x" * 5000)) as model,
        proxied(model.url, settings=ON, reply_limit=2048) as proxy,
    ):
        reply = proxy.ask(PATHS[dialect], request(dialect))
    assert reply.status == 502
    assert "more than 2,048 bytes" in reply.json["error"]["message"]


def test_four_megabytes_of_tools_pass_or_are_folded() -> None:
    big = [
        {"name": f"tool_{i}", "description": "x" * 4000, "input_schema": schema()}
        for i in range(1000)
    ]
    with ModelServer(Says("Fine.")) as model, proxied(model.url) as proxy:
        reply = proxy.ask(PATHS["anthropic-messages"], request("anthropic-messages", tools=big))
        record = proxy.seen.one()
    assert reply.json["content"][0]["text"] == "Fine."
    assert record.outcome == "folded"
    assert len(model.requests[0].raw) < 20_000


def test_tokens_are_counted_of_what_the_model_will_get() -> None:
    counted = Raw([b'{"input_tokens": 12}'], 200, {"content-type": "application/json"})
    body = request("anthropic-messages")
    del body["max_tokens"]
    with ModelServer(counted) as model, proxied(model.url, settings=ON) as proxy:
        reply = proxy.ask("/v1/messages/count_tokens?beta=true", body)
    assert reply.body == b'{"input_tokens": 12}'
    assert model.requests[0].path == "/v1/messages/count_tokens?beta=true"
    sent = model.requests[0].body
    assert [tool["name"] for tool in sent["tools"]] == ["tool_search", "tool_describe", "tool_call"]
    assert sent["messages"] == body["messages"]


def test_observers_are_told_of_the_searches_inside() -> None:
    told: list[SearchRecord] = []

    class Ear(Silent):
        def searched(self, record: SearchRecord) -> None:
            told.append(record)

    with (
        ModelServer(SEARCH, RUN) as model,
        proxied(model.url, settings=ON, observers=(Ear(),)) as proxy,
    ):
        proxy.ask(PATHS["openai-chat"], request("openai-chat"))
        proxy.seen.one()
    assert [(each.query, each.role, each.principal) for each in told] == [
        ("send an email", "tool_search", "local")
    ]
    assert told[0].found[0] == "send_email"


def test_a_request_is_one_span_with_its_model_and_its_tokens() -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = Spans(provider.get_tracer("test"))
    with (
        ModelServer(SEARCH, RUN) as model,
        proxied(model.url, settings=ON, app={"spans": spans}) as proxy,
    ):
        proxy.ask(PATHS["openai-chat"], request("openai-chat"))
        proxy.seen.one()
    (span,) = exporter.get_finished_spans()
    attributes = span.attributes or {}
    assert span.name == "chat m"
    assert attributes["gen_ai.request.model"] == "m"
    assert attributes["toolfold.rounds"] == 2
    assert attributes["toolfold.outcome"] == "folded"
    assert "a@b.c" not in str(attributes)


@pytest.mark.parametrize("dialect", PATHS)
def test_an_upstream_that_does_not_stream_is_searched_for_all_the_same(dialect: str) -> None:
    def whole(step: Says) -> Any:
        def answer(received: Any) -> Raw:
            with ModelServer(step) as other:
                plain = json.dumps({**received.body, "stream": False}).encode()
                body = _ask_plain(other.url, PATHS[dialect], plain)
            return Raw([body], 200, {"content-type": "application/json"})

        return answer

    with (
        ModelServer(whole(SEARCH), whole(RUN)) as model,
        proxied(model.url, settings=ON) as proxy,
    ):
        reply = proxy.ask(PATHS[dialect], request(dialect, stream=True))
    assert len(model.requests) == 2
    assert b"send_email" in reply.body
    assert isinstance(reply.json, dict)
