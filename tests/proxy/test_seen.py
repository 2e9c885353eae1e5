"""What is written down of requests: records, metrics, audit, status, kept traffic."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from support.model_server import ModelServer, Says
from support.proxies import ask, proxied, proxy_config
from toolfold import Settings
from toolfold.cli import main
from toolfold.config.serve_settings import ServeSettings
from toolfold.dispatch.records import RequestRecord
from toolfold.evaluation.trace import read_trace
from toolfold.proxy._report import ProxyTally
from toolfold.proxy._run_proxy import ProxyOptions, process, running
from toolfold.proxy.traffic import Traffic
from toolfold.redact import Redactor
from toolfold.runtime.messages import Call
from toolfold.serve.control.running_gateways import running_gateways
from toolfold.serve.observe.audit import request_line
from toolfold.serve.observe.metrics import Metrics

RECORD = RequestRecord(
    at=1_800_000_000.0,
    principal="local",
    upstream="up",
    dialect="openai-chat",
    model="m",
    outcome="folded",
    status=200,
    seconds=1.5,
    added=0.002,
    first=0.5,
    rounds=2,
    searches=1,
    calls=1,
    tools=60,
    tokens_before=1_000,
    tokens_after=100,
    prompt_tokens=500,
    cached_tokens=300,
    completion_tokens=20,
)


def test_metrics_count_requests_rounds_tokens_and_time() -> None:
    metrics = Metrics()
    assert "toolfold_requests" not in metrics.text().replace("toolfold_requests_refused", "")
    metrics.requested(RECORD)
    metrics.requested(replace(RECORD, dialect="", outcome="untouched"))
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(metrics.text())
        for sample in family.samples
    }
    assert samples["toolfold_requests_total", "folded", "openai-chat", "up"] == 1
    assert samples["toolfold_requests_total", "other", "untouched", "up"] == 1
    assert samples["toolfold_request_rounds_total",] == 2
    assert samples["toolfold_request_searches_total",] == 1
    assert samples["toolfold_request_cached_tokens_total",] == 300
    assert samples["toolfold_request_tool_tokens_total", "before"] == 2_000
    assert samples["toolfold_request_tool_tokens_total", "after"] == 200
    assert samples["toolfold_request_added_seconds_sum",] == 0.002
    assert samples["toolfold_request_first_byte_seconds_count",] == 1


def test_the_audit_has_what_was_counted_and_nothing_that_was_said() -> None:
    line = json.loads(
        request_line(
            replace(RECORD, error="Authorization: Bearer abcdefghijklmnopqrstuvwx0123"), Redactor()
        )
    )
    assert line["rounds"] == 2
    assert line["tokens_before"] == 1_000
    assert "abcdefghijkl" not in line["error"]


def test_a_tally_says_in_one_line_what_was_saved() -> None:
    tally = ProxyTally()
    assert tally.summary() == "toolfold: 0 requests, nothing to fold"
    tally.requested(RECORD)
    tally.requested(replace(RECORD, outcome="untouched", rounds=1, searches=0, tokens_before=0))
    tally.requested(replace(RECORD, dialect=""))
    assert tally.summary() == (
        "toolfold: 2 requests, 1 folded, 1 search; 1,700 tokens of tool definitions saved (85%)"
    )


def test_a_tally_never_says_that_all_was_saved() -> None:
    tally = ProxyTally()
    tally.requested(replace(RECORD, rounds=1, tokens_before=62_290, tokens_after=282))

    assert tally.summary().endswith("62,008 tokens of tool definitions saved (99%)")


def test_a_running_proxy_tells_its_user_how_it_stands(tmp_path: Path) -> None:
    serve = ServeSettings(state_dir=str(tmp_path), audit=str(tmp_path / "audit.jsonl"))
    hello = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

    async def stand(url: str) -> tuple[object, str, str]:
        config = replace(proxy_config(url, listen="127.0.0.1:0"), serve=serve)
        with process(config, ProxyOptions()) as observers:
            async with running(config, ProxyOptions(), observers) as proxy:
                await asyncio.to_thread(ask, proxy.address, "/v1/chat/completions", hello)
                health = await asyncio.to_thread(ask, proxy.address, "/toolfold/healthz")
                metrics = await asyncio.to_thread(ask, proxy.address, "/toolfold/metrics")
                assert health.json == {"status": "ok"}
                shown = await asyncio.to_thread(
                    CliRunner().invoke, main, ["status", "--state-dir", str(tmp_path)]
                )
                found = await asyncio.to_thread(running_gateways, [tmp_path])
        return found[0].report, metrics.body.decode(), shown.output

    with ModelServer(Says("Hi.")) as model:
        report, metrics, shown = asyncio.run(stand(model.url))
        url = model.url
    assert isinstance(report, dict)
    assert (report["transport"], report["requests"], report["failed"]) == ("proxy", 1, 0)
    assert report["upstreams"] == [{"name": "up0", "url": url, "requests": 1, "failed": 0}]
    assert "toolfold_requests_total" in metrics
    assert "1 request" in shown
    assert "tokens saved" in shown
    assert '"dialect":"openai-chat"' in (tmp_path / "audit.jsonl").read_text("utf-8")


DIALECTS = ["/v1/chat/completions", "/v1/responses", "/v1/messages"]


@pytest.mark.parametrize("path", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
def test_kept_traffic_has_no_secret_and_can_be_replayed(
    path: str, stream: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2-of-the-environment")
    traffic = Traffic(tmp_path / "kept", secrets=["key-of-the-upstream"])
    said = "mail a@b.c; my token is key-of-the-upstream or hunter2-of-the-environment"
    call, result = _history(path)
    body = {
        "model": "m",
        "stream": stream,
        "input" if "responses" in path else "messages": [
            {"role": "user", "content": said},
            *call,
            *result,
        ],
        "tools": _tools(path),
    }
    with (
        ModelServer(Says("All done.")) as model,
        proxied(model.url, settings=Settings(enabled="off"), app={"traffic": traffic}) as proxy,
    ):
        assert proxy.ask(path, body, {"x-api-key": "my-own-client-key"}).status == 200
        proxy.seen.one()
    traffic.close()
    (file,) = (tmp_path / "kept").iterdir()
    text = file.read_text("utf-8")
    for secret in ("key-of-the-upstream", "hunter2", "my-own-client-key"):
        assert secret not in text
    assert file.stat().st_mode & 0o077 == 0
    trace = read_trace(file)
    (turn,) = trace.turns
    assert [need.tool for need in turn.plan.needs] == ["mcp__mail__send"]
    assert turn.plan.answer == "All done."
    assert turn.results == ("sent",)
    assert trace.core == ("Read",)


def _tools(path: str) -> list[dict[str, object]]:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    names = ("Read", "mcp__mail__send")
    if "chat" in path:
        return [
            {"type": "function", "function": {"name": name, "parameters": schema}} for name in names
        ]
    if "responses" in path:
        return [{"type": "function", "name": name, "parameters": schema} for name in names]
    return [{"name": name, "input_schema": schema} for name in names]


def _history(path: str) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    call = Call("mcp__mail__send", '{"to": "a@b.c"}', "call_1")
    if "chat" in path:
        called: dict[str, object] = {
            "id": "call_1",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        return (
            [{"role": "assistant", "content": None, "tool_calls": [called]}],
            [{"role": "tool", "tool_call_id": "call_1", "content": "sent"}],
        )
    if "responses" in path:
        made: dict[str, object] = {
            "type": "function_call",
            "call_id": "call_1",
            "name": call.name,
            "arguments": call.arguments,
        }
        return [made], [{"type": "function_call_output", "call_id": "call_1", "output": "sent"}]
    use = {"type": "tool_use", "id": "call_1", "name": call.name, "input": {"to": "a@b.c"}}
    back = {"type": "tool_result", "tool_use_id": "call_1", "content": "sent"}
    return [{"role": "assistant", "content": [use]}], [{"role": "user", "content": [back]}]
