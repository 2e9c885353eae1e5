"""`source.prefixed()` and `source.filtered()`: other names, fewer tools, the same calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.running import wait
from support.strategies import records
from toolfold import Answer, Settings, Tool, fold
from toolfold.runtime import Agent, ScriptedModel
from toolfold.sources import CallContext, Definitions, PendingCall, Registry, Source
from toolfold.tool import Json, Shape
from toolfold.wire import read

SHAPES: Sequence[Shape] = get_args(Shape)
STRATEGIES = ("bridge", "stub", "reveal")


@given(st.sampled_from(SHAPES).flatmap(lambda shape: st.tuples(st.just(shape), records(shape))))
def test_a_prefixed_record_has_the_new_name_and_keeps_the_rest(case: tuple[Shape, Any]) -> None:
    shape, record = case
    inner = Definitions([record])

    [tool] = inner.prefixed("box").tools()
    [old] = inner.tools()

    assert tool.raw is not None and old.raw is not None
    assert tool.size == len(json.dumps(tool.raw, separators=(",", ":"), ensure_ascii=False))
    [again] = read([tool.raw])[0].tools
    assert again == replace(tool, own_name="")
    assert tool.name == f"box__{old.name}"
    assert {**tool.raw, **_named(old.raw, shape)} == old.raw


def _named(raw: Mapping[str, Json], shape: Shape) -> dict[str, Json]:
    """What of a record says how the tool is called and whose it is."""
    keys = ("function",) if shape == "openai-chat" else ("name", "server", "source")
    return {key: raw[key] for key in keys if key in raw}


@pytest.mark.parametrize("out", SHAPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "settings",
    [
        Settings(enabled="off"),
        Settings(enabled="on", core=("box__tea_pot",)),
        *(Settings(enabled="on", strategy=strategy) for strategy in STRATEGIES),
    ],
    ids=["off", "core", *STRATEGIES],
)
def test_the_old_name_is_on_no_wire(shape: Shape, out: Shape, settings: Settings) -> None:
    records = [_record(shape, name) for name in ("tea_pot", "cup")]
    tools = Definitions(records).prefixed("box").tools()

    folded = fold(tools, settings=settings, shape=out)
    found = folded.resolve("tool_search", {"query": "pour tea"})
    shown = folded.for_session(found.session)

    assert isinstance(found, Answer)
    written = json.dumps([folded.tools, shown.tools, found.text])
    assert '"tea_pot"' not in written
    assert "elsewhere" not in written
    if not folded.active:
        assert {t.name for entry in read(folded.tools) for t in entry.tools} == {
            "box__tea_pot",
            "box__cup",
        }


def _record(shape: Shape, name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"much": {"type": "integer"}}}
    about = {"name": name, "description": "Pour tea."}
    match shape:
        case "openai-chat":
            return {"type": "function", "function": {**about, "parameters": schema}}
        case "openai-responses":
            return {"type": "function", **about, "parameters": schema}
        case "anthropic":
            return {**about, "input_schema": schema}
        case "mcp":
            return {**about, "inputSchema": schema}
        case "gemini":
            return {**about, "parametersJsonSchema": schema}
        case "plain":
            return {**about, "parameters": schema, "server": "elsewhere"}


def test_calls_bounds_and_texts_of_a_prefixed_source_are_the_inner_ones() -> None:
    registry = Registry()

    @registry.tool(core=True, result_limit=60)
    def pour(much: int) -> str:
        """Pour tea."""
        return "tea" * much

    agent = Agent(ScriptedModel([]), registry.prefixed("box"))

    result = wait(agent.call("box__pour", {"much": 30}))

    assert result.text.startswith("tea" * 20 + "\n")
    assert agent.assemble().report.kept == 1
    wrong = wait(agent.call("box__pour", {"much": "a lot"}))
    assert wrong.is_error
    assert "box__pour" in wrong.text


def test_a_filtered_source_has_no_other_tools() -> None:
    source = Definitions([{"name": "tea"}, {"name": "tea_drop"}, {"name": "milk"}])

    agent = Agent(ScriptedModel([]), source.filtered(allow=("tea*",), deny=("*_drop",)))

    assert [tool.name for tool in agent.tools()] == ["tea"]
    assert wait(agent.call("milk")).text == '"milk" is not available in this session.'


class Fleeting(Source):
    """Its tools are gone once they were listed."""

    name = "fleeting"

    def __init__(self) -> None:
        self.listed: tuple[Tool, ...] = (Tool("now"),)

    def tools(self) -> tuple[Tool, ...]:
        return self.listed

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        return "here"


def test_a_tool_that_leaves_on_the_way_to_its_call_is_not_available() -> None:
    inner = Fleeting()
    outer = inner.prefixed("box")
    [tool] = outer.tools()
    inner.listed = ()
    assert outer.tools() == ()

    context = CallContext(PendingCall(tool, {}), lambda *_: None)
    output = wait(outer.call(tool, {}, context))

    assert output.is_error
    assert output.text == '"box__now" is not available in this session.'


def test_a_definition_says_that_nothing_runs_it() -> None:
    agent = Agent(ScriptedModel([]), Definitions([{"name": "tea"}]))

    result = wait(agent.call("tea"))

    assert result.is_error
    assert result.text == "tea is not connected here: only its definition is known. Say so."
