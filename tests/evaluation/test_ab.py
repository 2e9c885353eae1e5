"""The A/B: scenarios on a stage that really runs, a model that follows a plan, measures."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from click.testing import CliRunner

from support.html_page import HtmlPage
from toolfold.cli import main
from toolfold.errors import ConfigError
from toolfold.evaluation.ab import (
    ARMS,
    SCENARIOS,
    Habits,
    Measures,
    Need,
    Plan,
    PlannedModel,
    Run,
    Scenario,
    Task,
    Turn,
    TurnPlan,
    arms_named,
    hold,
    load_prices,
    measured,
    rows,
    scripted,
)
from toolfold.evaluation.ab.run_record import as_json, from_json, make_folder, save
from toolfold.evaluation.ab.runner import catalog_of
from toolfold.evaluation.ab.scenario_tools import CORE, folded_tools, registry_of
from toolfold.evaluation.ab.scenarios import scenarios_named
from toolfold.evaluation.ab.stage import SEEDED_SESSION, Stage
from toolfold.evaluation.report.ab_page import report_html
from toolfold.redact import Redactor
from toolfold.runtime.agent import Agent
from toolfold.runtime.model import Model, ModelError, Reply, Request, TextDelta
from toolfold.runtime.scripted import Says, ScriptedModel, calls, says
from toolfold.settings import Settings

NAMES = [scenario.name for scenario in SCENARIOS]
SEED = ["obvious_single", "vague_paraphrase", "chain_of_two", "core_plus_folded", "no_tool_needed"]
PRICES = load_prices()


def made(
    scenario: str | Scenario,
    arm: str = "folded",
    model: Callable[[Task], Model] | None = None,
    *,
    timeout: float = 30.0,
) -> tuple[Run, Measures]:
    """Hold one scenario and return the record and its measures."""
    chosen = scenarios_named((scenario,))[0] if isinstance(scenario, str) else scenario
    runs: list[Run] = []
    plan = Plan(model or scripted(), timeout=timeout)
    task = Task(chosen, arms_named([arm])[0], 1)
    asyncio.run(hold([task], plan, lambda _, run: runs.append(run)))
    return runs[0], measured(chosen, runs[0], catalog_of(chosen), PRICES)


def script(*steps: Says | Callable[[Request], Says]) -> Callable[[Task], Model]:
    return lambda _: ScriptedModel(steps)


def search(query: str) -> tuple[str, dict[str, Any]]:
    return "tool_search", {"query": query}


def through(name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "tool_call", {"name": name, "arguments": arguments}


# ---- what must be shown: same tools, few extra round trips


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("obvious_single", 1),
        ("vague_paraphrase", 1),
        ("chain_of_two", 1),
        ("core_plus_folded", 1),
        ("no_tool_needed", 0),
    ],
)
def test_folded_the_same_tools_run_for_so_many_round_trips_more(name: str, extra: int) -> None:
    _, folded = made(name, "folded")
    _, unfolded = made(name, "unfolded")

    assert folded.success and unfolded.success
    assert folded.tools_run == unfolded.tools_run
    assert folded.round_trips - unfolded.round_trips == extra


def test_a_chain_that_is_searched_for_one_by_one_costs_two_round_trips_more() -> None:
    _, folded = made("chain_of_two", "folded", scripted(Habits(one_by_one=True)))
    _, unfolded = made("chain_of_two", "unfolded")

    assert folded.success
    assert folded.round_trips - unfolded.round_trips == 2


def test_describing_before_calling_costs_another_round_trip() -> None:
    _, plain = made("obvious_single", "folded")
    _, describing = made("obvious_single", "folded", scripted(Habits(describes_first=True)))

    assert describing.success
    assert (plain.describes, describing.describes) == (0, 1)
    assert describing.round_trips == plain.round_trips + 1


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_competent_model_succeeds_at_every_scenario_in_every_arm(name: str, arm: str) -> None:
    _, result = made(name, arm)

    assert result.problems == ()
    assert result.invented == ()
    assert (result.core_via_bridge, result.needless_searches) == (0, 0)


def test_a_short_name_is_an_arm_under_another_name() -> None:
    asked = arms_named(["folded", "prefetch", "folded", "stub"])

    assert [arm.name for arm in asked] == ["folded", "prefetch", "stub"]
    assert [replace(arm, name="") for arm in asked] == [
        replace(ARMS[name], name="") for name in ("bridge", "bridge+prefetch", "stub")
    ]


def test_folding_reads_a_fraction_of_the_tokens_and_hardly_more_as_the_catalog_grows() -> None:
    tokens = {
        (name, arm): made(name, arm)[1].prompt_tokens
        for name in ("size_50", "size_200", "size_1000")
        for arm in ("folded", "unfolded")
    }

    assert tokens["size_200", "folded"] * 20 < tokens["size_200", "unfolded"]
    assert tokens["size_1000", "folded"] < 1.6 * tokens["size_50", "folded"]
    assert tokens["size_1000", "unfolded"] > 15 * tokens["size_50", "unfolded"]


def test_the_same_run_twice_measures_the_same_but_for_the_time() -> None:
    def untimed(result: Measures) -> Measures:
        return replace(result, seconds=0.0, first_action_seconds=None)

    assert untimed(made("six_prompts")[1]) == untimed(made("six_prompts")[1])


# ---- the model that follows a plan


def planned(
    steps: Sequence[TurnPlan],
    texts: Sequence[str],
    *,
    prefetch: Literal["off", "sure", "always"] = "off",
    strategy: str = "bridge",
) -> tuple[list[str], list[str], PlannedModel]:
    """Hold a conversation on the whole stage; return the answers, the tools run, the model."""

    async def main() -> tuple[list[str], list[str], PlannedModel]:
        stage, model = Stage(), PlannedModel(steps)
        settings = Settings(enabled="on", strategy=strategy, cache_dir="off")  # type: ignore[arg-type]
        registry = registry_of(replace(SCENARIOS[0], folded=None), stage)
        agent = Agent(model, registry, settings=settings, prefetch=prefetch)
        conversation = agent.conversation()
        answers = [(await conversation.ask(text)).text for text in texts]
        return answers, [item.tool for item in stage.executed], model

    return asyncio.run(main())


def called(model: PlannedModel) -> list[str]:
    """The names that the model called, in order, as they stand in its last prompt."""
    messages = model.requests[-1].messages
    return [call.name for message in messages for call in getattr(message, "calls", ())]


LIGHT = Need("switch a light on", "home__set_light", {"target": "hall", "on": True})


def test_a_tool_that_was_used_before_is_called_again_without_a_search() -> None:
    _, ran, model = planned([TurnPlan((LIGHT,)), TurnPlan((LIGHT,))], ["Light!", "Again!"])

    assert ran == ["home__set_light"] * 2
    assert called(model) == ["tool_search", "tool_call", "tool_call"]


def test_a_tool_that_the_host_named_ahead_is_called_at_once() -> None:
    text = "Switch on the light in the hall"

    _, ran, model = planned([TurnPlan((LIGHT,))], [text], prefetch="sure")

    assert ran == ["home__set_light"]
    assert called(model) == ["tool_call"]


def test_a_stub_is_loaded_by_its_name_and_then_called_directly() -> None:
    _, ran, model = planned([TurnPlan((LIGHT,))], ["Light!"], strategy="stub")

    assert ran == ["home__set_light"]
    assert called(model) == ["tool_search", "home__set_light"]
    assert json.loads(model.requests[1].messages[1].calls[0].arguments) == {  # type: ignore[union-attr]
        "query": "home__set_light"
    }


def test_what_is_not_found_is_looked_for_once_more_and_then_given_up_honestly() -> None:
    unfindable = Need(
        "fold a paper swan", "home__set_light", {"target": "hall"}, again="glue a paper crane"
    )

    answers, ran, model = planned([TurnPlan((unfindable,), "The swan is folded.")], ["A swan!"])

    assert ran == []
    assert called(model) == ["tool_search", "tool_search"]
    assert answers == ["I could not do this, for want of a tool that works: fold a paper swan."]


def test_what_waits_for_something_that_failed_is_not_tried() -> None:
    first = Need("fold a paper swan", "forge__create_issue", {"repo": "a/b", "title": "Swan"})
    second = replace(LIGHT, waits=True)

    _, ran, _ = planned([TurnPlan((first, second))], ["A swan, then light"])

    assert ran == []


def test_needs_that_wait_for_nothing_are_called_in_one_reply() -> None:
    blinds = Need("close the blinds", "home__set_blinds", {"target": "hall", "position": 0})

    _, ran, model = planned([TurnPlan((LIGHT, blinds))], ["Light, and blinds"])

    assert sorted(ran) == ["home__set_blinds", "home__set_light"]
    assert called(model) == ["tool_search", "tool_call", "tool_call"]
    assert len(model.requests) == 3


# ---- success is judged by what was done


def test_a_model_that_only_claims_fails() -> None:
    _, result = made("obvious_single", model=script(says("I opened issue 1 in acme/website.")))

    assert not result.success
    assert result.problems == ("forge__create_issue did not run",)


def test_the_summary_turn_exposes_what_was_only_claimed() -> None:
    turns = scenarios_named(("six_prompts",))[0].turns
    liar = script(*(says(turn.answer) for turn in turns))

    _, result = made("six_prompts", model=liar)

    assert result.tools_run == ()
    assert result.problems == (
        "turn 2: memory__save did not run",
        "turn 4: terminal did not run",
        "turn 4: memory__save did not run",
        "turn 5: sessions__search did not run",
        "turn 5: memory__save did not run",
        "turn 6: the answer claims what memory__save never did",
        "turn 6: the answer claims what terminal never did",
        "turn 6: the answer claims what sessions__search never did",
    )


def test_wrong_arguments_are_no_success() -> None:
    wrong = {"repo": "acme/shop", "title": "Login button does nothing on Safari"}
    model = script(calls(through("forge__create_issue", wrong)), says("Opened issue 1."))

    _, result = made("obvious_single", model=model)

    assert result.problems == ("forge__create_issue ran, but not as it should",)


def test_doing_it_twice_or_doing_more_than_was_asked_is_no_success() -> None:
    right = {"repo": "acme/website", "title": "Login button does nothing on Safari"}
    twice = calls(through("forge__create_issue", right), through("forge__create_issue", right))
    more = calls(
        through("forge__create_branch", {"repo": "acme/website", "name": "fix"}),
        through("forge__list_issues", {"repo": "acme/website"}),
    )

    whole = replace(scenarios_named(("obvious_single",))[0], folded=None)
    _, result = made(whole, model=script(twice, more, says("Opened issue 1.")))

    assert result.problems == (
        "forge__create_issue ran once too often",
        "forge__create_branch ran, and nobody asked for it",
    )


def test_the_second_of_a_chain_must_not_run_before_the_first() -> None:
    message = {"recipients": ["nadia"], "text": "Checkout is down"}
    model = script(
        calls(through("chat__send_direct_message", message)),
        calls(through("monitor__get_on_call", {"team": "payments"})),
        says("I told Nadia."),
    )

    _, result = made("chain_of_two", model=model)

    assert result.problems == ("chat__send_direct_message ran too early",)


def test_inventing_a_result_where_no_tool_exists_is_no_success() -> None:
    _, result = made("no_such_tool", model=script(says("I have faxed the signed contract.")))

    assert len(result.problems) == 2
    assert result.problems[1] == "the answer says 'I have faxed'"


# ---- how the model went about it


def test_names_that_exist_nowhere_are_counted_as_invented() -> None:
    model = script(
        calls(through("forge__open_ticket", {}), ("fax__send", {}), search("open an issue")),
        says("No."),
    )

    _, result = made("obvious_single", model=model)

    assert result.invented == ("forge__open_ticket", "fax__send")


def test_a_bridge_that_is_not_there_is_an_invention() -> None:
    model = script(calls(search("open an issue"), through("forge__create_issue", {})), says("No."))

    assert made("obvious_single", "unfolded", model)[1].invented == ("tool_search", "tool_call")
    assert made("obvious_single", "stub", model)[1].invented == ("tool_call",)


def test_core_tools_sent_through_the_bridge_are_counted() -> None:
    path = {"path": "notes/standup.md"}
    model = script(calls(through("read_file", path)), calls(("read_file", path)), says("Read."))

    _, result = made("core_plus_folded", model=model)

    assert result.core_via_bridge == 1
    assert result.tools_run == ("read_file",)


def test_a_search_for_what_is_listed_or_known_or_not_needed_is_needless() -> None:
    unneeded = script(calls(search("semaphore")), says("A mutex, a semaphore."))
    right = {"repo": "acme/website", "title": "Login button does nothing on Safari"}
    known = script(
        calls(search("open an issue in a repository")),
        calls(search("create an issue")),
        calls(through("forge__create_issue", right)),
        says("Opened issue 1."),
    )

    assert made("no_tool_needed", model=unneeded)[1].needless_searches == 1
    _, result = made("obvious_single", model=known)
    assert (result.searches, result.needless_searches, result.success) == (2, 1, True)


def test_looking_for_a_tool_that_does_not_exist_is_not_needless() -> None:
    _, result = made("no_such_tool")

    assert (result.searches, result.needless_searches) == (2, 0)


def test_the_first_useful_action_is_the_first_real_tool_or_the_answer() -> None:
    run, result = made("obvious_single")
    answered, answer = made("no_tool_needed")
    _, nothing = made("obvious_single", model=script(says("Opened issue 1.")))

    assert result.first_action_seconds == run.turns[0].first_tool
    assert answer.first_action_seconds == answered.turns[0].seconds
    assert nothing.first_action_seconds is None


# ---- runs that fail


class Broken:
    """A model that cannot be reached."""

    name = "broken"
    shape = "openai-chat"

    async def stream(self, request: Request) -> AsyncIterator[TextDelta | Reply]:
        raise ModelError("the server said 401 to sk-abcdefghijklmnop0123456789")
        yield


class Hanging:
    """A model that never answers."""

    name = "hanging"
    shape = "openai-chat"

    async def stream(self, request: Request) -> AsyncIterator[TextDelta | Reply]:
        await asyncio.Event().wait()
        yield TextDelta("")


def test_a_run_that_fails_is_recorded_without_secrets_and_the_rest_goes_on() -> None:
    def model(task: Task) -> Model:
        fails = task.scenario.name == "obvious_single"
        return Broken() if fails else scripted()(task)  # type: ignore[return-value]

    runs: list[Run] = []
    chosen = scenarios_named(("obvious_single", "no_tool_needed"))
    todo = [Task(scenario, arms_named(["folded"])[0], 1) for scenario in chosen]
    asyncio.run(hold(todo, Plan(model, concurrency=2), lambda _, run: runs.append(run)))

    errors = {run.scenario: run.error for run in runs}
    assert errors == {
        "obvious_single": "the server said 401 to [redacted]",
        "no_tool_needed": None,
    }


def test_a_run_that_takes_too_long_is_ended() -> None:
    run, result = made("obvious_single", model=lambda _: Hanging(), timeout=0.05)  # type: ignore[return-value]

    assert run.error == "no end after 0.05 s"
    assert not result.success
    assert [message.text for message in run.turns[0].messages] == [run.turns[0].prompt]


def test_runs_that_broke_off_do_not_lower_the_means() -> None:
    _, good = made("obvious_single")
    bad = replace(good, success=False, error="no end", prompt_tokens=0, round_trips=0)

    (row,) = rows([good, bad])

    assert (row.runs, row.succeeded, row.errors) == (2, 1, 1)
    assert row.prompt_tokens == good.prompt_tokens


# ---- the stage


def test_a_smaller_catalog_holds_what_is_wanted_and_a_larger_one_has_distinct_names() -> None:
    wanted = ("monitor__silence_alert", "home__set_light")

    for count in (3, 50, 200, 210, 1_000, 2_000):
        names = [tool.name for tool in folded_tools(count, wanted)]
        assert len(names) == len(set(names)) == count
        assert set(wanted) <= set(names)
    assert folded_tools(1_000) == folded_tools(1_000)


def test_a_catalog_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        folded_tools(100_000)

    assert caught.value.message == "99790 more tools are too many"


def test_the_seeded_phrase_stands_in_one_session_only() -> None:
    stage = Stage()

    assert [key for key, text in stage.sessions.items() if "HELLO_FOLD_BASELINE" in text] == [
        SEEDED_SESSION
    ]


def test_the_core_tools_answer_to_a_bad_path_or_command_with_an_error() -> None:
    async def main() -> list[tuple[str, bool]]:
        agent = Agent(ScriptedModel([]), registry_of(SCENARIOS[0], Stage()))
        results = [
            await agent.call("read_file", {"path": "nope"}),
            await agent.call("terminal", {"command": "rm -rf /"}),
            await agent.call("terminal", {"command": 'echo "'}),
            await agent.call("terminal", {"command": "cat notes/standup.md"}),
        ]
        return [(result.text.splitlines()[0], result.is_error) for result in results]

    assert asyncio.run(main()) == [
        ("no file 'nope'; there are: notes/standup.md", True),
        ("sh: rm: command not found", True),
        ("sh: No closing quotation", True),
        ("Release 2.4 slips to Thursday", False),
    ]


def test_every_plan_satisfies_its_own_checks_and_names_tools_that_exist() -> None:
    everything = {tool.name for tool in (*CORE, *folded_tools())}

    for scenario in SCENARIOS:
        assert set(scenario.held) <= everything
        for turn in scenario.turns:
            assert set(turn.checks) <= set(turn.wanted)
            assert all(re.search(pattern, turn.answer, re.IGNORECASE) for pattern in turn.says)


def test_only_the_scenarios_of_size_have_more_tools_than_openai_takes() -> None:
    large = {s.name for s in SCENARIOS if len(registry_of(s, Stage())) > 128}

    assert large == {"size_200", "size_1000"}


# ---- transcripts


def test_a_transcript_is_read_back_as_it_was_written() -> None:
    run, _ = made("six_prompts")

    again = from_json(json.loads(json.dumps(as_json(run))))

    assert again.turns[0].messages == run.turns[0].messages
    assert replace(again, turns=()) == replace(run, turns=())
    assert [turn.executed for turn in again.turns] == [turn.executed for turn in run.turns]


def test_a_transcript_is_utf8_without_secrets_in_a_folder_that_git_ignores(tmp_path: Path) -> None:
    asks = Scenario("asks", "a secret", (Turn("Mein Schlüssel ist sk-abcdefghijklmnop0123456789"),))
    run, result = made(asks, model=script(says("Gut, und hunter2-und-mehr?")))

    make_folder(tmp_path)
    file = save(tmp_path, run, result.as_json(), Redactor(["hunter2-und-mehr"]))

    text = file.read_bytes().decode("utf-8")
    assert "Schlüssel ist [redacted]" in text
    assert "Gut, und [redacted]?" in text
    assert "hunter2" not in text and "sk-abc" not in text
    assert (tmp_path / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_git_ignores_the_folder(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    run, result = made("no_tool_needed")
    make_folder(tmp_path / ".toolfold" / "ab")
    save(tmp_path / ".toolfold" / "ab", run, result.as_json(), Redactor())

    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=tmp_path, check=True, capture_output=True, text=True
    )

    assert status.stdout == ""


# ---- prices


def test_a_cost_is_by_the_table_and_an_unknown_model_has_none(tmp_path: Path) -> None:
    table = tmp_path / "prices.toml"
    table.write_text(
        '[[price]]\nmodel = "mine-*"\ninput = 2\ncached = 0.5\noutput = 10\n'
        '[[price]]\nmodel = "plain"\ninput = 1\noutput = 1\n',
        encoding="utf-8",
    )
    prices = load_prices(table)

    assert prices.cost("maker/Mine-1", 1_500_000, 500_000, 100_000) == 2 + 0.25 + 1
    assert prices.cost("plain", 1_000_000, 400_000, 0) == 1
    assert prices.cost("other", 1, 0, 0) is None


def test_the_bundled_table_tells_generations_of_a_model_apart() -> None:
    newer = PRICES.of("anthropic/claude-opus-4-5-20251101")

    assert newer is not None and newer.input == 5
    assert PRICES.of("claude-opus-4-1-20250805") is None
    assert PRICES.of("gpt-5.2-pro") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("price = 3", "holds no list `price`"),
        ("[[price]]\ninput = 1\noutput = 1", "price 1 names no model"),
        ('[[price]]\nmodel = "a"\noutput = 1', "price 1: `input` is None"),
        ('[[price]]\nmodel = "a"\ninput = -1\noutput = 1', "price 1: `input` is -1"),
        ('[[price]]\nmodel = "a"\nin = 1', "price 1 has the unknown key 'in'"),
        ("[[price", "is no TOML"),
    ],
)
def test_a_table_that_cannot_be_used_names_the_entry(
    tmp_path: Path, text: str, message: str
) -> None:
    table = tmp_path / "prices.toml"
    table.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        load_prices(table)

    assert message in caught.value.message


# ---- the report


def test_the_report_is_one_page_that_holds_every_transcript() -> None:
    runs = {
        result.label: (run, result)
        for name in SEED
        for run, result in (made(name, arm) for arm in ("folded", "unfolded"))
    }
    results = [result for _, result in runs.values()]

    page = HtmlPage(
        report_html(results, title="A/B", transcript=lambda result: runs[result.label][0])
    )

    assert page.open == [] and page.loads == []
    anchors = [f"#conversation-{i}" for i in range(1, len(results) + 1)]
    assert [link for link in page.links if link.startswith("#conversation")] == anchors
    assert [link for link in page.links if link[1:] not in page.ids] == []
    for run, _ in runs.values():
        assert all(turn.text in page.words for turn in run.turns)


def test_every_text_of_the_report_is_escaped() -> None:
    _, result = made("no_tool_needed")
    nasty = replace(
        result,
        scenario="<script>a</script>",
        problems=("<img src=x onerror=alert(1)>",),
        invented=('"><b>',),
        success=False,
    )

    text = report_html([nasty], title="<title>", notes=["<p>"])

    assert "<script>" not in text and "<img" not in text and "<b>" not in text
    assert HtmlPage(text).loads == []


# ---- the command


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def run_ab(*arguments: str) -> Ran:
    result = CliRunner().invoke(main, ["ab", *arguments])
    return Ran(result.exit_code, result.stdout, result.stderr)


def test_the_command_lists_the_scenarios() -> None:
    ran = run_ab("--list", "--scenario", "obvious_single", "--scenario", "size_1000")

    assert ran == Ran(
        0,
        "obvious_single  one folded tool, named almost literally\n"
        "size_1000       one tool among 1,000 folded ones\n",
        "",
    )


def test_the_command_prints_a_table_and_writes_transcripts_and_report() -> None:
    ran = run_ab("--scripted", "--scenario", "obvious_single", "--out", "out")

    lines = [re.sub(r" +\d+\.\d\d +\d+\.\d\d$", "", line) for line in ran.out.splitlines()]
    assert (ran.code, ran.err) == (0, "report: out/report.html\n")
    assert [line.split()[:5] for line in lines] == [
        ["scenario", "arm", "ok", "trips", "search"],
        ["obvious_single", "folded", "1/1", "3", "1"],
        ["obvious_single", "unfolded", "1/1", "2", "0"],
    ]
    assert sorted(path.name for path in Path("out").rglob("*") if path.is_file()) == [
        ".gitignore",
        "obvious_single__folded__1.json",
        "obvious_single__unfolded__1.json",
        "report.html",
        "results.json",
    ]


def test_the_command_prints_json_and_puts_its_files_where_git_ignores_them() -> None:
    ran = run_ab(
        "--scripted", "--scenario", "no_tool_needed", "--arms", "stub,prefetch", "--repeat", "2",
        "--concurrency", "4", "--profile", "small", "--json",
    )  # fmt: skip

    value = json.loads(ran.out)
    assert ran.code == 0
    assert value["model"] == "scripted"
    assert value["folder"].startswith(".toolfold/ab/")
    assert [(r["arm"], r["runs"], r["succeeded"]) for r in value["rows"]] == [
        ("stub", 2, 2),
        ("prefetch", 2, 2),
    ]
    assert [(r["arm"], r["repeat"]) for r in value["runs"]] == [
        ("stub", 1),
        ("prefetch", 1),
        ("stub", 2),
        ("prefetch", 2),
    ]
    assert (Path(value["folder"]) / ".gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            [],
            "error: no model is named\n\nhint: give --model NAME, with --base-url URL for a server "
            "of your own; `toolfold ab --scripted` needs no model\n",
        ),
        (
            ["--model", "m"],
            "error: there is no key: the environment variable `OPENAI_API_KEY` is not set\n\n"
            "hint: set it, name another with --api-key-env, or give --base-url for a server of "
            "your own; `toolfold ab --scripted` needs no model\n",
        ),
        (
            ["--model", "m", "--base-url", "http://localhost:1/v1", "--api-key-env", "MY_KEY"],
            "error: the environment variable `MY_KEY` is not set\n\n"
            "hint: set it, or leave out --api-key-env where no key is needed\n",
        ),
        (
            ["--scripted", "--arms", "folded,foldet"],
            "error: no arm is named 'foldet'\n\n"
            "hint: there are: unfolded, bridge, stub, bridge+sure, bridge+prefetch, "
            "bridge+describe, folded, sure, prefetch\n",
        ),
        (
            ["--model", "m", "--arms", "folded,bridge+describe"],
            "error: the arm 'bridge+describe' is for a model that follows a plan\n\n"
            "hint: leave it out, or add --scripted\n",
        ),
        (
            ["--scripted", "--arms", ","],
            "error: `--arms` names none\n\nhint: write, say, --arms folded,unfolded\n",
        ),
        (
            ["--scripted", "--scenario", "hard"],
            f"error: no scenario is named 'hard'\n\nhint: there are: {', '.join(NAMES)}\n",
        ),
        (
            ["--scripted", "--prices", "none.toml"],
            "error: cannot read `none.toml`: No such file or directory\n\nhint: check the path\n",
        ),
    ],
)
def test_the_command_says_what_is_missing_and_what_to_do(arguments: list[str], error: str) -> None:
    assert run_ab(*arguments) == Ran(2, "", error)


class FakeServer(BaseHTTPRequestHandler):
    """An OpenAI-compatible server whose model opens the issue, folded or not."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Bearer a-key-of-mine":
            self._answer(401, {"error": {"message": "wrong key"}})
            return
        given = {"repo": "acme/website", "title": "Login button does nothing on Safari"}
        names = {tool["function"]["name"] for tool in body["tools"]}
        results = [message for message in body["messages"] if message["role"] == "tool"]
        steps: list[tuple[str, dict[str, Any]]] = [("forge__create_issue", given)]
        if "tool_call" in names:
            steps = [search("open an issue"), through("forge__create_issue", given)]
        message: dict[str, Any] = {"role": "assistant", "content": "Issue 1; a-key-of-mine."}
        if len(results) < len(steps):
            name, arguments = steps[len(results)]
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": f"c{len(results)}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        usage = {
            "prompt_tokens": 1_000,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 400},
        }
        reason = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        self._answer(200, {"choices": [choice], "usage": usage})

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeServer) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/v1"
        http.shutdown()
        thread.join(5)


def test_the_command_asks_a_server_counts_its_tokens_and_keeps_its_key_to_itself(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMETHING", "a-key-of-mine")
    prices = '[[price]]\nmodel = "fake"\ninput = 1\ncached = 0.5\noutput = 10\n'
    Path("prices.toml").write_text(prices, encoding="utf-8")

    ran = run_ab(
        "--model", "fake", "--base-url", server, "--api-key-env", "SOMETHING", "--json",
        "--scenario", "obvious_single", "--prices", "prices.toml", "--out", "out",
    )  # fmt: skip

    folded, unfolded = json.loads(ran.out)["runs"]
    assert (folded["success"], unfolded["success"]) == (True, True)
    assert (folded["round_trips"], unfolded["round_trips"]) == (3, 2)
    assert (folded["prompt_tokens"], folded["cached_tokens"]) == (3_000, 1_200)
    assert folded["cost"] == (1_800 * 1 + 1_200 * 0.5 + 30 * 10) / 1_000_000
    written = [path.read_text(encoding="utf-8") for path in Path("out").rglob("*.*")]
    assert not any("a-key-of-mine" in text for text in written)


def test_the_command_fails_where_no_run_could_be_completed(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong-key-of-mine")

    ran = run_ab("--model", "fake", "--base-url", server, "--scenario", "obvious_single")

    assert ran.code == 1
    assert "warning: 2 of 2 runs ended early: " in ran.err
    assert "error: no run was completed: " in ran.err
    assert "wrong-key" not in ran.err + ran.out


def test_the_command_keeps_what_was_done_when_it_is_interrupted(tmp_path: Path) -> None:
    code = "from toolfold.cli.ab import command; command()"
    arguments = ["--scripted", "--repeat", "500", "--out", "out"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("out/transcripts/obvious_single__unfolded__*.json")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "obvious_single" in out
    assert re.search(r"warning: stopped after \d+ of 11000 runs", err)
    results = json.loads((tmp_path / "out/results.json").read_text(encoding="utf-8"))
    transcripts = list(tmp_path.glob("out/transcripts/*.json"))
    assert len(results["runs"]) == len(transcripts) > 1
