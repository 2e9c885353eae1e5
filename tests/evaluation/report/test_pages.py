"""The pages of `toolfold ab`, `replay` and `eval`: what they say, whatever they are given."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolfold
from support.html_page import HtmlPage
from toolfold.evaluation.ab import Measures, Run, TurnRecord
from toolfold.evaluation.replay import Replayed
from toolfold.evaluation.report.ab_page import report_html, saving
from toolfold.evaluation.report.conversation import ShownTurn, conversation_html
from toolfold.evaluation.report.eval_page import eval_html
from toolfold.evaluation.report.markup import element
from toolfold.evaluation.report.page import ReportPage, ReportSection, page_html
from toolfold.evaluation.report.replay_page import replay_html
from toolfold.runtime.messages import Call, Message, ModelMessage, ResultMessage, UserMessage
from toolfold.runtime.model import Usage

SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'>&</details></section>"
PLAIN = Measures(
    scenario="one",
    arm="unfolded",
    repeat=1,
    model="m",
    success=True,
    problems=(),
    error=None,
    tools_run=("send_mail",),
    invented=(),
    core_via_bridge=0,
    needless_searches=0,
    searches=0,
    describes=0,
    round_trips=2,
    prompt_tokens=1_000,
    cached_tokens=0,
    uncached_tokens=1_000,
    completion_tokens=10,
    cost=None,
    first_action_seconds=0.1,
    seconds=0.2,
)


def measured(scenario: str, arm: str, read: int, trips: int = 2, **more: Any) -> Measures:
    return replace(PLAIN, scenario=scenario, arm=arm, prompt_tokens=read, round_trips=trips, **more)


def headline(page: str) -> str:
    return HtmlPage(page).within("p")[0]


def sure(page: str) -> list[str]:
    return HtmlPage(page).within("li")


# ---- the page itself


def test_the_policy_allows_the_one_style_sheet_by_its_digest_and_nothing_else() -> None:
    text = page_html(ReportPage("a title", "A headline."))

    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert HtmlPage(text).policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_the_colours_are_those_of_the_inspector() -> None:
    folder = Path(toolfold.__file__).parent
    sheets = ("evaluation/report/report.css", "inspector/static/inspector.css")
    found = [
        dict(re.findall(r"(--[a-z]+): (light-dark\([^)]*\));", (folder / name).read_text("utf-8")))
        for name in sheets
    ]

    ours, theirs = found
    assert {name: value for name, value in ours.items() if theirs.get(name, value) != value} == {}
    assert len(ours.keys() & theirs.keys()) >= 8


def test_sections_are_linked_from_the_top_where_there_are_several() -> None:
    sections = tuple(ReportSection(name, (element("p", name),)) for name in ("a", "b", "c"))

    page = HtmlPage(page_html(ReportPage("t", "h", sections=sections)))

    assert page.links == ["#part-1", "#part-2", "#part-3"]
    assert [link[1:] for link in page.links] == page.ids


@given(st.text(max_size=200))
def test_a_text_is_shown_and_is_never_markup(words: str) -> None:
    made = HtmlPage(f"<div>{element('p', words, title=words)}</div>")

    assert made.open == [] and made.loads == []
    assert {tag for tag, _ in made.texts} <= {"p"}


def test_what_nobody_sees_is_written_out() -> None:
    assert element("p", "a\u202eb\ud800c") == "<p>a[U+202E]b[U+D800]c</p>"


# ---- the A/B


def test_the_headline_says_what_was_saved_what_it_cost_and_how_sure_that_is() -> None:
    runs = [
        measured("one", "folded", 200, 3),
        measured("one", "unfolded", 1_000),
        measured("two", "folded", 400, 3),
        measured("two", "unfolded", 3_000, success=False, problems=("wrong",)),
    ]

    page = report_html(runs, title="A/B")

    assert headline(page) == (
        "Folded, the model read 85 % fewer tokens than unfolded (300 a run instead of 2,000), for "
        "1.0 round trips more a run; 2 of 2 runs folded, 1 of 2 runs unfolded did what they should."
    )
    assert sure(page)[:2] == [
        "The share of tokens saved: 80 to 87 % (95 % interval, by drawing 2 scenarios anew; "
        "4 runs).",
        "Rates of success (95 % intervals): folded 34 to 100 %, unfolded 9 to 91 %.",
    ]


def test_more_tokens_are_not_called_a_saving() -> None:
    runs = [measured("one", "folded", 1_500, 2), measured("one", "unfolded", 1_000)]

    assert headline(report_html(runs, title="A/B")) == (
        "Folded, the model read 50 % more tokens than unfolded (1,500 a run instead of 1,000), "
        "for as many round trips; each of the 2 runs did what it should."
    )


def test_one_run_an_arm_has_no_interval_and_several_runs_of_one_scenario_have_one() -> None:
    one = [measured("one", "folded", 100), measured("one", "unfolded", 1_000)]
    more = [replace(run, repeat=2, prompt_tokens=run.prompt_tokens + 100) for run in one]

    alone, several = saving(one, "unfolded", "folded"), saving([*one, *more], "unfolded", "folded")

    assert alone is not None and alone.interval is None
    assert "there is no interval (2 runs)" in report_html(one, title="A/B")
    assert several is not None and several.interval == pytest.approx((1 - 200 / 1_100, 0.9))


def test_a_scenario_that_one_arm_did_not_end_is_left_out_of_the_comparison() -> None:
    runs = [
        measured("one", "folded", 100),
        measured("one", "unfolded", 1_000),
        measured("huge", "folded", 5_000),
        measured("huge", "unfolded", 1, success=False, error="128 tools at most"),
    ]

    found = saving(runs, "unfolded", "folded")

    assert found is not None
    assert (found.scenarios, found.runs, found.read) == (1, 2, (1_000, 100))
    assert "1 run ended early." in sure(report_html(runs, title="A/B"))[1]


def test_the_page_of_nothing_and_of_runs_that_all_broke_off_says_so() -> None:
    broken = measured("one", "folded", 0, success=False, error="no such model")

    assert headline(report_html([], title="A/B")) == "No run was made."
    page = report_html([broken, replace(broken, arm="unfolded")], title="A/B")
    assert headline(page) == "None of 2 runs came to its end."
    assert sure(page)[0] == "no such model"


def test_one_arm_alone_is_told_without_a_comparison() -> None:
    page = report_html([measured("one", "folded", 100)], title="A/B")

    assert headline(page) == "The one run did what it should."


def test_a_hundred_scenarios_stay_a_page_that_can_be_mailed() -> None:
    runs = [
        measured(f"scenario {i}", arm, 1_000 + i, success=i % 7 > 0)
        for i in range(100)
        for arm in ("folded", "unfolded")
    ]
    talk = tuple(
        TurnRecord(f"turn {i}", messages=(UserMessage("x" * 9_000), ModelMessage("y" * 9_000)))
        for i in range(6)
    )

    text = report_html(
        runs, title="A/B", transcript=lambda run: Run(run.scenario, run.arm, 1, "m", turns=talk)
    )

    page = HtmlPage(text)
    assert len(text) < 6_000_000
    assert page.open == []
    left_out = re.search(r"(\d+) conversations left out", page.words)
    assert left_out is not None
    shown = [i for i in range(1, len(runs) + 1) if f"conversation-{i}" in page.ids]
    assert len(shown) == len(runs) - int(left_out[1])
    failed = [i for i, run in enumerate(runs, 1) if not run.success]
    assert set(failed) <= set(shown), "the failed ones go first"
    assert "60 more are left out." in page.words  # of the bars by scenario; the table has all
    assert "scenario 99" in page.within("th")


# ---- conversations


def talk(*messages: Message, error: str = "") -> HtmlPage:
    return HtmlPage(f"<main>{conversation_html([ShownTurn(messages, ('1.00 s',), error)])}</main>")


def test_a_conversation_shows_real_calls_and_folds_the_bridge_away() -> None:
    page = talk(
        UserMessage("Mail Ada", note="send_mail(to)"),
        ModelMessage("I look.", (Call("tool_search", '{"query": "mail | post"}'),)),
        ResultMessage("- send_mail(to)", found=("send_mail", "send_post")),
        ModelMessage(
            calls=(Call("tool_call", '{"name": "send_mail", "arguments": {"to": "ada"}}'),)
        ),
        ResultMessage("sent"),
        ModelMessage("Done."),
    )

    assert page.within("summary") == [
        "named before the model asked, 4 tokens",
        "tool_search: mail | post → 2 hits, 4 tokens",
    ]
    assert page.within("code") == ["send_mail"]
    assert '{\n "to": "ada"\n}' in page.within("pre")
    assert page.within("p")[-1] == "1.00 s · found send_mail, send_post · used send_mail"


def test_a_call_that_failed_or_was_never_answered_is_marked() -> None:
    failed = talk(
        UserMessage("u"), ModelMessage(calls=(Call("go"),)), ResultMessage("no", is_error=True)
    )
    open_end = talk(UserMessage("u"), ModelMessage(calls=(Call("go"),)), error="It ended early: x")

    assert failed.within("strong") == ["failed"]
    assert "used" not in failed.words
    assert "no result" in open_end.within("pre")
    assert "It ended early: x" in open_end.within("p")


def test_arguments_that_are_no_object_and_texts_of_megabytes_do_no_harm() -> None:
    page = talk(
        UserMessage("u" * 1_000_000),
        ModelMessage(calls=(Call("", "[[["), Call("tool_call", "null"), Call("a", "{"))),
        ResultMessage("r" * 1_000_000),
    )

    assert page.open == []
    assert len(page.words) < 20_000
    assert "(996,000 more characters)" in page.words


def test_a_stranger_text_is_inert_wherever_it_stands() -> None:
    nasty = measured(
        SCRIPT,
        SCRIPT,
        100,
        problems=(SCRIPT,),
        invented=(SCRIPT,),
        tools_run=(SCRIPT,),
        model=SCRIPT,
    )
    said: Sequence[Message] = (
        UserMessage(SCRIPT, note=SCRIPT),
        ModelMessage(
            SCRIPT, (Call(SCRIPT, json.dumps({SCRIPT: SCRIPT})), Call("tool_search", SCRIPT))
        ),
        ResultMessage(SCRIPT, found=(SCRIPT,), is_error=True),
        ResultMessage(SCRIPT, found=(SCRIPT,)),
    )
    run = Run(
        SCRIPT, SCRIPT, 1, SCRIPT, turns=(TurnRecord(SCRIPT, messages=tuple(said)),), error=SCRIPT
    )
    row = {"corpus": SCRIPT, "ranker": SCRIPT, "recall@5": 1.0, "categories": {SCRIPT: {}}}
    again = Replayed(SCRIPT, SCRIPT, 1, 1, 0, 1, Usage(9), (9,), (0,), tuple(said))

    for text in (
        report_html(
            [nasty, replace(nasty, arm="b", error=SCRIPT)],
            title=SCRIPT,
            notes=[SCRIPT],
            command=SCRIPT,
            made=SCRIPT,
            transcript=lambda _: run,
        ),
        eval_html({SCRIPT: [row], "this run": [row]}, command=SCRIPT),
        replay_html([again, replace(again, strategy="b")], command=SCRIPT),
    ):
        page = HtmlPage(text)
        assert page.open == [] and page.loads == []
        assert "<script>alert(2)</script>" in page.words


def test_a_stranger_text_of_megabytes_takes_its_share_and_no_more() -> None:
    long = "x " * 1_000_000
    huge = measured(
        long, "folded", 9, problems=(long,), invented=(long,), tools_run=(long,), success=False
    )
    said = (UserMessage(long), ModelMessage(long, (Call(long, long),)), ResultMessage(long))
    run = Run(long, "folded", 1, long, turns=(TurnRecord(long, messages=said),), error=long)

    page = report_html([huge], title=long, notes=[long], command=long, transcript=lambda _: run)

    assert len(page) < 100_000
    assert len(eval_html({long: [row(long, 0.5)]})) < 100_000


# ---- replay


def replayed(trace: str, strategy: str, read: int, trips: int, met: int = 2) -> Replayed:
    return Replayed(trace, strategy, 3, 2, met, trips, Usage(read, 0, 5), (read,), (0,))


def test_the_page_of_a_replay_says_what_each_strategy_saves() -> None:
    results = [
        replayed("a", "unfolded", 1_000, 4),
        replayed("a", "bridge", 100, 6),
        replayed("b", "unfolded", 3_000, 4),
        replayed("b", "bridge", 500, 6),
    ]

    page = replay_html(results)

    assert headline(page) == (
        "Over 2 conversations of 6 turns: bridge reads 85 % fewer tokens than unfolded (600 "
        "instead of 4,000), for 4 round trips more; every need was met under each of them."
    )
    assert sure(page)[0] == (
        "The saving over conversations like these: 83 to 90 % (95 % interval, by drawing 2 "
        "conversations anew)."
    )


def test_needs_that_were_not_met_and_a_single_conversation_are_told() -> None:
    results = [replayed("a", "unfolded", 1_000, 4), replayed("a", "stub", 900, 4, met=1)]

    page = replay_html(results)

    assert headline(page).endswith("needs were met: 2 of 2 under unfolded, 1 of 2 under stub.")
    assert sure(page)[0] == "One conversation: what others would save cannot be told from it."
    assert headline(replay_html([])) == "Nothing was replayed."
    alone = headline(replay_html(results[:1]))
    assert alone.startswith("1 conversation of 3 turns read 1,000 tokens in 4 round trips")


# ---- eval


def row(corpus: str, recall: float | None, **more: Any) -> dict[str, Any]:
    about = {"corpus": corpus, "ranker": "hybrid", "tools": 10, "queries": 40, "ms_p50": 0.5}
    return {**about, "recall@5": recall, "false_hit_rate": None, **more}


def test_the_page_of_an_evaluation_says_what_is_found_and_how_sure_that_is() -> None:
    page = eval_html({"this run": [row("mine", 0.9, **{"recall@5_interval": [0.8, 0.95]})]})

    assert headline(page) == (
        "Search (hybrid) finds 90 % of the right tools in five hits, among 10 tools of mine; a "
        "search takes 0.50 ms."
    )
    assert sure(page)[0] == "Recall@5: 80 to 95 % (95 % interval, by drawing 40 requests anew)."


def test_a_mean_is_of_several_corpora() -> None:
    one = eval_html({"this run": [row("mine", 0.9)]})
    two = eval_html({"this run": [row("mine", 0.9), row("yours", 0.7)]})

    assert ("mean hybrid" in one, "mean hybrid" in two) == (False, True)


def test_beside_an_earlier_run_the_page_says_what_changed_and_whether_that_may_be_chance() -> None:
    interval = "recall@5_interval"
    before = [row("a", 0.5, **{interval: [0.4, 0.6]}), row("b", 0.9, **{interval: [0.8, 1.0]})]
    now = [row("a", 0.7, **{interval: [0.65, 0.8]}), row("b", 0.9, **{interval: [0.8, 1.0]})]

    page = eval_html({"before": before, "this run": now})

    assert headline(page).startswith("Search (hybrid) finds 80 % of the right tools in five hits, ")
    assert sure(page)[1] == (
        "That is 10.0 points more than before; the intervals lie apart on 1 of 2 corpora."
    )


def test_requests_that_nothing_serves_alone_and_no_results_have_a_headline_too() -> None:
    unserved = row("none", None, false_hit_rate=0.125)

    assert headline(eval_html({"this run": [unserved]})) == (
        "12 % of the requests that no tool serves get a hit."
    )
    for nothing in ({}, {"this run": []}, {"this run": [row("none", None)]}):
        assert headline(eval_html(nothing)) == "Nothing was measured."


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=9,
    )
)
def test_a_result_of_a_stranger_never_ends_the_page(value: Any) -> None:
    keys = ("recall@5", "recall@5_interval", "curve", "categories", "prefetch", "answers", "tools")
    stranger = {"corpus": value, "ranker": value, **dict.fromkeys(keys, value)}

    assert HtmlPage(eval_html({"theirs": [stranger], "this run": [row("a", 0.5)]})).open == []
