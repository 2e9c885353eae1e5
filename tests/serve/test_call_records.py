"""The one record of a call: what audit, metrics, spans, status and the activity feed are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from support.gateways import Seen, client, gateway, odd, run, said, until
from support.running import wait
from toolfold.dispatch.activity import Activity, ActivityFeed
from toolfold.dispatch.spans import Spans
from toolfold.runtime import Agent, Registry, ScriptedModel
from toolfold.runtime.messages import Call
from toolfold.scope import Scope
from toolfold.serve.observe.audit import AuditLog
from toolfold.serve.observe.metrics import Metrics
from toolfold.serve.observe.status_screen import Board
from toolfold.serve.principals import Principal
from toolfold.settings import Settings
from toolfold.sources.calls import Output
from toolfold.tool import Tool

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")


class Traced:
    """A real tracer of OpenTelemetry that keeps its spans."""

    def __init__(self) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.spans = Spans(provider.get_tracer("toolfold"))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._exporter.get_finished_spans())


def test_every_way_a_call_can_end_is_told_alike_to_all_who_watch(tmp_path: Path) -> None:
    registry = Registry()
    registry.tool(lambda: Output("no", is_error=True), name="errs", destructive=False)

    async def main() -> None:
        audit, metrics, board, seen = (
            AuditLog(tmp_path / "audit.jsonl"), Metrics(), Board(), Seen()
        )  # fmt: skip
        feed: list[Activity] = []
        traced = Traced()
        safe = {"one__[!w]*": {"destructiveHint": False}}
        async with (
            gateway(
                odd("one", call_timeout=1.0),
                sources=[registry.prefixed("own")],
                serve={"destructive": "refuse"},
                settings={"annotations": safe},
                observers=(audit, metrics, board, seen, ActivityFeed(feed.append)),
                spans=traced.spans,
            ) as made,
            client(made) as c,
        ):
            assert said(await c.call_tool("one__echo", {"x": "a"})) == "one:a"
            await c.call_tool("own__errs", {})
            await c.call_tool("one__wipe", {"x": "all"})
            with pytest.raises(MCPError):
                await c.call_tool("one__fail", {"x": "why"})
            await c.call_tool("one__slow", {"x": "30"})
            slow = asyncio.create_task(c.call_tool("one__slow", {"x": "30"}))
            await until(lambda: made.pool.in_flight)
            slow.cancel()
            await until(lambda: len(seen.calls) == 6)
            await c.call_tool("one__die", {})
        audit.close()
        expected = [
            ("one__echo", "ok", None, ""),
            ("own__errs", "tool_error", None, "tool_error"),
            ("one__wipe", "refused",
             "It may destroy something, and this gateway refuses such calls.", "refused"),
            ("one__fail", "failed", "why", "MCPError"),
            ("one__slow", "timeout", "TimeoutError", "timeout"),
            ("one__slow", "cancelled", "the caller gave it up before it ended", "CancelledError"),
            ("one__die", "failed", "server 'one' died over it", "failed"),
        ]  # fmt: skip
        told = [(tool, outcome, error) for tool, outcome, error, _ in expected]
        assert [(call.tool, call.outcome, call.error) for call in seen.calls] == told
        lines = [json.loads(x) for x in (tmp_path / "audit.jsonl").read_text("utf-8").splitlines()]
        assert [(line["tool"], line["outcome"], line["error"]) for line in lines] == told
        assert [line["request_size"] for line in lines] == [9, 2, 11, 11, 10, 10, 2]
        assert [bool(line["result_size"]) for line in lines] == [True, True, *[False] * 5]
        assert [
            (span.attributes["gen_ai.tool.name"], span.attributes["toolfold.outcome"],
             span.attributes.get("error.type", ""))
            for span in traced
        ] == [(tool, outcome, kind) for tool, outcome, _, kind in expected]  # fmt: skip
        text = metrics.text()
        for tool, outcome, _, _ in expected:
            labels = f'server="{tool[:3]}",tool="{tool}",outcome="{outcome}"'
            assert f"toolfold_calls_total{{{labels}}} 1" in text
        assert "calls 7 (5 failed)" in "\n".join(board.lines(200, 50))
        assert [(a.kind, a.tool) for a in feed if a.kind != "started"] == [
            ("refused" if outcome == "refused" else "finished", tool)
            for tool, outcome, _, _ in expected
        ]

    run(main)


def test_a_call_of_what_a_search_revealed_is_recorded_as_such() -> None:
    async def main() -> None:
        seen = Seen()
        async with (
            gateway(
                odd("one"),
                settings={"enabled": "on", "strategy": "reveal"},
                observers=(seen,),
            ) as made,
            client(made) as c,
        ):
            await c.call_tool("tool_search", {"query": "say a text back"})
            await c.call_tool("one__echo", {"x": "a"})
        assert [(call.tool, call.via) for call in seen.calls] == [("one__echo", "revealed")]
        assert [(found.query, found.principal) for found in seen.searches] == [
            ("say a text back", "local")
        ]

    run(main)


# ---- the span of a search


def test_a_search_in_the_gateway_is_a_span_with_its_hits_and_without_its_query() -> None:
    async def main() -> None:
        traced, seen = Traced(), Seen()
        async with (
            gateway(
                odd("one"), settings={"enabled": "on"}, observers=(seen,), spans=traced.spans
            ) as made,
            client(made) as c,
        ):
            await c.call_tool("tool_search", {"query": "say a text back"})
            await c.call_tool("tool_describe", {"name": "one__echo"})
            call = {"name": "one__echo", "arguments": {"x": "a"}}
            await c.call_tool("tool_call", call)
        search, execute = traced
        assert (search.name, execute.name) == ("retrieval toolfold", "execute_tool one__echo")
        assert search.attributes["gen_ai.operation.name"] == "retrieval"
        assert search.attributes["toolfold.principal"] == "local"
        assert search.attributes["toolfold.hits"] == seen.searches[0].hits > 0
        assert "text back" not in search.to_json()

    run(main)


def test_an_agents_searches_and_calls_are_spans_too() -> None:
    traced = Traced()
    registry = Registry()
    registry.tool(lambda: "sunny", name="weather_report")
    agent = Agent(ScriptedModel([]), registry, settings=Settings(enabled="on"), spans=traced.spans)
    calls = (
        Call("tool_search", '{"query": "weather report"}'),
        Call("tool_call", '{"name": "weather_report", "arguments": {}}'),
    )

    wait(agent.batch(calls, agent.assemble()).run())

    search, execute = traced
    assert (search.name, search.attributes["toolfold.hits"]) == ("retrieval toolfold", 1)
    assert execute.name == "execute_tool weather_report"
    assert execute.attributes["toolfold.outcome"] == "ok"


# ---- the scope of all


def test_an_outer_scope_that_is_within_another_is_not_widened_for_a_principal() -> None:
    async def main() -> None:
        outer = Scope(deny=("*__pid",)).narrow(allow=("*__echo", "*__pid", "*__env"))
        who = Principal("narrow", Scope(allow=("one__*",), deny=("*__env",)))
        async with (
            gateway(odd("one"), odd("two"), scope=outer) as made,
            client(made, who=made.narrowed(who)) as c,
        ):
            assert [tool.name for tool in (await c.list_tools()).tools] == ["one__echo"]
            assert "is not available" in said(await c.call_tool("one__pid", {}))
            within = made.narrowed(who)
            assert not within.admits(Tool("one__pid", source="one"))

    run(main)
