"""Recorded conversations under any strategy, and how a prompt grows."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from toolfold.arguments import check
from toolfold.catalog import Catalog
from toolfold.cli import main
from toolfold.demo import demo_catalog
from toolfold.errors import CatalogError, ConfigError
from toolfold.evaluation.ab import ARMS, Habits, Plan, Run, Task, arms_named, hold, scripted
from toolfold.evaluation.ab.run_record import as_json
from toolfold.evaluation.ab.scenarios import scenarios_named
from toolfold.evaluation.growth import Growth, growth, growth_svg, long_trace, sample
from toolfold.evaluation.plot import grouped_bars_svg, lines_svg
from toolfold.evaluation.replay import Replayed, replay
from toolfold.evaluation.trace import TRACES, Trace, read_trace
from toolfold.runtime.agent import Limits
from toolfold.sources.catalog_file import load_catalog
from toolfold.tool import Tool

BUNDLED = sorted(TRACES.glob("*.jsonl"))

DEPLOY = (
    Path(os.environ.get("TOOLFOLD_CORPORA") or Path(__file__).parents[3] / "shared" / "corpora")
    / "deploy-226"
    / "tools.jsonl"
)
with_deploy = pytest.mark.skipif(
    not DEPLOY.exists(),
    reason=f"the corpus deploy-226 is not at {DEPLOY}; point TOOLFOLD_CORPORA at the corpora",
)

TOOLS = [
    {"name": "lamp.on", "description": "Switch a lamp on.", "server": "lamp"},
    {"name": "lamp.off", "description": "Switch a lamp off.", "server": "lamp"},
    {"name": "kettle.boil", "description": "Boil water in the kettle.", "server": "kettle"},
]
TRACE = [
    {"trace": "evening", "about": "Two lamps and a chat.", "catalog": "tools.jsonl"},
    {
        "user": "It is dark here",
        "needs": [{"search": "switch a lamp on", "tool": "lamp.on", "result": "lit"}],
        "answer": "There is light.",
    },
    {"user": "Nice", "answer": "Indeed."},
    {
        "user": "Tea, and light off after that",
        "needs": [
            {"search": "boil water", "tool": "kettle.boil", "result": 40},
            {"search": "switch a lamp off", "tool": "lamp.off", "waits": True},
        ],
        "answer": "Good night.",
    },
]


@pytest.fixture(autouse=True)
def _in_a_folder_with_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("tools.jsonl", TOOLS)
    write("evening.jsonl", TRACE)


def write(name: str, values: list[Any]) -> None:
    Path(name).write_text("\n".join(map(json.dumps, values)), encoding="utf-8")


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: str) -> Ran:
    result = CliRunner().invoke(main, ["replay", *arguments])
    return Ran(result.exit_code, result.stdout, result.stderr)


def replayed(trace: Trace, limits: Limits | None = None) -> dict[str, Replayed]:
    return {name: replay(trace, strategy, limits) for name, strategy in ARMS.items()}


# ---- replaying


def test_a_trace_costs_the_round_trips_that_each_strategy_needs() -> None:
    trips = {name: r.round_trips for name, r in replayed(read_trace("evening.jsonl")).items()}

    # What a search leaves out as next to impossible is searched for when it is needed, and "It is
    # dark here" speaks of no lamp: only a note that need not be sure names one.
    assert trips == {
        "unfolded": 6,
        "bridge": 8,
        "stub": 8,
        "bridge+sure": 8,
        "bridge+prefetch": 7,
        "bridge+describe": 11,
    }


def test_a_replay_gives_back_what_was_recorded_and_counts_what_it_costs() -> None:
    result = replay(read_trace("evening.jsonl"), ARMS["unfolded"])

    assert (result.turns, result.needs, result.met) == (3, 3, 3)
    assert len(result.prompts) == 3 and list(result.prompts) == sorted(result.prompts)
    assert result.discoveries == (0, 0, 0)
    assert result.usage.prompt > result.usage.cached > 0


def test_a_replay_is_the_same_every_time() -> None:
    trace = read_trace(BUNDLED[0])

    assert replayed(trace) == replayed(trace)


@pytest.mark.parametrize("file", BUNDLED, ids=lambda path: path.stem)
def test_every_bundled_trace_runs_to_its_end_under_every_strategy(file: Path) -> None:
    results = replayed(read_trace(file))

    assert {name: result.met for name, result in results.items()} == dict.fromkeys(
        ARMS, results["unfolded"].needs
    )
    trips = {name: result.round_trips for name, result in results.items()}
    assert trips["unfolded"] <= trips["bridge+prefetch"] <= trips["bridge+sure"]
    assert trips["bridge+sure"] <= trips["bridge"] <= trips["stub"]
    assert trips["bridge"] < trips["bridge+describe"]
    assert results["bridge"].usage.prompt * 3 < results["unfolded"].usage.prompt


def test_the_bundled_traces_hold_one_of_thirty_turns_that_all_use_a_tool() -> None:
    traces = [read_trace(file) for file in BUNDLED]

    assert sum(len(trace.turns) for trace in traces) >= 60
    assert any(
        len(trace.turns) == 30 and all(said.plan.needs for said in trace.turns) for trace in traces
    )


def test_prefetch_saves_round_trips_on_the_bundled_traces_and_reads_no_more() -> None:
    both = [
        [replay(read_trace(file), ARMS[name]) for file in BUNDLED]
        for name in ("bridge", "bridge+prefetch")
    ]

    plain, ahead = (
        (sum(r.round_trips for r in results), sum(r.usage.prompt for r in results))
        for results in both
    )
    assert plain[0] - ahead[0] >= 20
    assert ahead[1] <= plain[1]


def test_a_tool_that_cannot_be_found_is_a_need_that_is_not_met() -> None:
    lost = {
        "user": "Hm",
        "needs": [{"search": "fly to the moon", "tool": "lamp.on"}],
        "answer": "Flown.",
    }
    write("lost.jsonl", [TRACE[0], lost])

    result = replay(read_trace("lost.jsonl"), ARMS["bridge"])

    assert (result.needs, result.met) == (1, 0)


# ---- transcripts of `toolfold ab`


def test_a_transcript_of_the_ab_is_a_trace() -> None:
    runs: list[Run] = []
    (scenario,) = scenarios_named(("six_prompts",))
    todo = [Task(scenario, arms_named(["folded"])[0], 1)]
    plan = Plan(scripted(Habits(one_by_one=True)))
    asyncio.run(hold(todo, plan, lambda _, run: runs.append(run)))
    Path("run.json").write_text(json.dumps(as_json(runs[0]), indent=1), encoding="utf-8")

    trace = read_trace("run.json")

    assert trace.name == "six_prompts__folded__1"
    assert [[need.tool for need in said.plan.needs] for said in trace.turns] == [
        [],
        ["memory__save"],
        [],
        ["terminal", "memory__save"],
        ["sessions__search", "memory__save"],
        [],
    ]
    saved = trace.turns[1].plan.needs[0]
    assert (saved.words, saved.waits) == ("save a fact to memory", False)
    assert trace.turns[3].plan.needs[1].waits
    again = replay(trace, ARMS["bridge"])
    assert (again.round_trips, again.met) == (sum(turn.round_trips for turn in runs[0].turns), 5)


# ---- what cannot be read


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([], "`bad.jsonl` is empty"),
        (["{"], "`bad.jsonl`, line 1: Expecting property name enclosed in double quotes"),
        (["3"], "`bad.jsonl`, line 1 is no object"),
        (["{}"], "`bad.jsonl`, line 1 does not name the trace"),
        (['{"trace": "a", "tool": 1}'], "`bad.jsonl`, line 1 has the unknown key 'tool'"),
        (['{"trace": "a", "core": "x"}'], "`bad.jsonl`, line 1: `core` is 'x'"),
        (['{"trace": "a"}', "", "{}"], "`bad.jsonl`, line 3 lacks what the user said"),
        (
            ['{"trace": "a"}', '{"user": "x", "needs": 1}'],
            "`bad.jsonl`, line 2: `needs` is no list",
        ),
        (
            ['{"trace": "a"}', '{"user": "x", "needs": [{"search": "y", "tool": "z"}]}'],
            "`bad.jsonl`, line 2: the catalog has no 'z'",
        ),
        (
            [
                '{"trace": "a", "catalog": "tools.jsonl"}',
                '{"user": "x", "needs": [{"search": "y", "tool": "lamp.on", "result": -1}]}',
            ],
            "`bad.jsonl`, line 2: `result` is -1",
        ),
        (['{"toolfold_ab": 1}'], "`bad.jsonl` is no transcript: 'scenario'"),
        (['{"toolfold_ab": 9}'], "`bad.jsonl` has version 9"),
    ],
)
def test_a_trace_that_cannot_be_read_names_the_line(lines: list[str], error: str) -> None:
    Path("bad.jsonl").write_text("\n".join(lines), encoding="utf-8")

    with pytest.raises(CatalogError) as caught:
        read_trace("bad.jsonl")

    assert caught.value.message == error
    assert caught.value.hint


def test_a_strategy_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        arms_named(["bride"], "strategy")

    assert caught.value.message == "no strategy is named 'bride'"


# ---- growth


@pytest.fixture(scope="module")
def grown() -> Growth:
    return growth(demo_catalog())


def assert_bounded(grown: Growth) -> None:
    """Discoveries stay within the budget; shrunk ones leave a line each."""
    lines = 40 * grown.folded.turns
    assert max(grown.folded.discoveries) <= grown.budget + lines
    assert max(grown.unshrunk.discoveries) > max(grown.folded.discoveries)
    assert grown.folded.met == grown.unfolded.met == grown.folded.needs


def test_discoveries_stay_within_their_budget_and_everything_stays_callable(grown: Growth) -> None:
    tight = growth(demo_catalog(), budget=2_000)

    assert grown.budget == Limits().discovery_tokens
    assert max(grown.folded.discoveries) <= grown.budget
    assert_bounded(tight)
    assert tight.folded.prompts[-1] < tight.unshrunk.prompts[-1]


def test_a_tighter_budget_makes_a_shorter_prompt(grown: Growth) -> None:
    tight = growth(demo_catalog(), budget=1_000)

    assert_bounded(tight)
    assert tight.folded.prompts[-1] < grown.folded.prompts[-1]
    assert tight.unfolded.prompts == grown.unfolded.prompts


@with_deploy
def test_unfolded_226_tools_are_paid_for_on_every_turn_and_folded_only_what_was_found() -> None:
    catalog = load_catalog(DEPLOY)

    deployed = growth(catalog)

    assert (deployed.tools, deployed.folded.turns) == (226, 30)
    assert min(deployed.unfolded.prompts) > 50_000
    assert_bounded(deployed)
    assert max(deployed.folded.prompts) * 5 < min(deployed.unfolded.prompts)
    assert deployed.folded.usage.prompt * 5 < deployed.unfolded.usage.prompt


def test_a_long_conversation_uses_another_tool_each_turn_and_repeats_where_there_are_few() -> None:
    many = long_trace(demo_catalog(), 30)
    few = long_trace(Catalog.read(TOOLS), 5)

    assert len({said.plan.needs[0].tool for said in many.turns}) == 30
    assert [said.plan.needs[0].tool for said in few.turns] == [
        "lamp.on",
        "lamp.off",
        "kettle.boil",
        "lamp.on",
        "lamp.off",
    ]


def test_a_catalog_without_descriptions_cannot_be_asked_for_anything() -> None:
    with pytest.raises(CatalogError) as caught:
        growth(Catalog([Tool("a")]))

    assert caught.value.message == "the catalog has no tool with a description that can be called"


def test_a_sample_is_what_the_schema_takes_but_for_a_pattern_or_an_object_of_anything() -> None:
    faults = [f for tool in demo_catalog() for f in check(tool, sample(tool.parameters)).faults]

    assert len(faults) < 20
    assert all("`pattern`" in f.message or "`minProperties`" in f.message for f in faults)


# ---- charts


def test_charts_are_well_formed_escaped_and_say_in_words_what_they_show() -> None:
    lines = lines_svg("a < b", {"one": [1, 2], "two & more": [10, 20]}, logarithmic=True)
    bars = grouped_bars_svg("a < b", {("x", "one"): 3.0, ("x", "two"): None})

    for chart in (lines, bars, lines_svg("none", {}), grouped_bars_svg("none", {})):
        assert ElementTree.fromstring(chart).tag.endswith("svg")
    assert "one: 1 tokens at turn 1, 2 at turn 2" in lines
    assert "x, one: 3" in bars


def test_the_growth_is_drawn_with_a_line_each(grown: Growth) -> None:
    chart = ElementTree.fromstring(growth_svg(grown))

    assert len(chart.findall("{http://www.w3.org/2000/svg}polyline")) == 3


# ---- the command


def test_the_command_prints_a_row_a_strategy() -> None:
    ran = run("evening.jsonl", "--strategy", "unfolded", "--strategy", "bridge")

    rows = [line.split() for line in ran.out.splitlines()]
    assert (ran.code, ran.err) == (0, "")
    assert [row[:4] for row in rows] == [
        ["trace", "strategy", "met", "trips"],
        ["evening", "unfolded", "3/3", "6"],
        ["evening", "bridge", "3/3", "8"],
    ]


def test_the_command_says_what_prefetch_is_worth() -> None:
    ran = run("evening.jsonl", "--strategy", "bridge", "--strategy", "bridge+prefetch")

    assert ran.out.splitlines()[-1].startswith("prefetch saves 1 of 8 round trips; tokens read: -")


def test_the_command_prints_json() -> None:
    value = json.loads(run("evening.jsonl", "--strategy", "bridge", "--json").out)

    (result,) = value["results"]
    assert result["round_trips"] == 8
    assert result["prompt_tokens"] == result["cached_tokens"] + result["uncached_tokens"]
    assert len(result["prompt_by_turn"]) == 3


def test_the_command_runs_the_bundled_traces_where_no_file_is_named() -> None:
    value = json.loads(run("--strategy", "bridge", "--json").out)

    assert [result["trace"] for result in value["results"]] == [file.stem for file in BUNDLED]


def test_the_command_draws_the_growth_over_any_catalog() -> None:
    ran = run("--growth", "growth.svg", "--catalog", "tools.jsonl", "--turns", "6")

    lines = ran.out.splitlines()
    assert ran.code == 0
    assert [line.split()[0] for line in lines] == ["turn", "1", "5", "6", "at"]
    assert Path("growth.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_command_says_what_cannot_be_read_or_written() -> None:
    assert run("none.jsonl") == Ran(
        2,
        "",
        "error: cannot read `none.jsonl`: No such file or directory\n\nhint: check the path\n",
    )
    assert run("--growth", "none/growth.svg", "--turns", "2").err == (
        "error: cannot write `none/growth.svg`: No such file or directory\n\n"
        "hint: give a file in a folder that is there, and yours\n"
    )
