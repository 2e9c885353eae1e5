"""Sources that are not there: answers name them, within the scope, and point to nobody else."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Answer, Scope, Settings, Tool, fold, prompts
from toolfold.absent import AbsentSource
from toolfold.fold import Folded
from toolfold.tokens import estimate

JIRA = AbsentSource("jira", "ended with 3 before it was ready", 39.2)
SAID = (
    "jira is not running: ended with 3 before it was ready; it is tried again in 40 s. "
    "Its tools cannot be run now: tell the user where they are needed."
)


def tools() -> list[Tool]:
    return [
        Tool("github__create_issue", "Create an issue in a repository.", source="github"),
        Tool("github__search_issues", "Search the issues of a repository.", source="github"),
        Tool("mail__send", "Send a mail to somebody.", source="mail"),
    ]


def folded(*, on: bool = True, **more: Any) -> Folded:
    settings = Settings(enabled="on" if on else "off", cache_dir="off", **more)
    return fold(tools(), settings=settings, configured=["github", "jira", "mail"])


def text(name: str, arguments: Any, *absent: AbsentSource, made: Folded | None = None) -> str:
    answer = (made or folded()).resolve(name, arguments, absent=absent)
    assert isinstance(answer, Answer)
    return answer.text


# ---- a search


def test_a_search_that_names_an_absent_source_says_that_it_is_not_running() -> None:
    answer = text("tool_search", {"query": "create an issue in Jira"}, JIRA)

    assert "github__create_issue" in answer
    assert answer.endswith(f"\n{SAID}")


def test_a_search_that_finds_nothing_names_all_that_is_absent() -> None:
    slow = AbsentSource("calendar")

    answer = text("tool_search", {"query": "feed the zebras"}, JIRA, slow)

    assert answer.startswith('No tool matches "feed the zebras"')
    assert "jira is not running: ended with 3 before it was ready; it is tried again in 40 s." in (
        answer
    )
    assert "calendar is still starting." in answer


def test_of_many_absent_sources_those_that_the_search_speaks_of_are_named() -> None:
    others = [AbsentSource(f"other{i}", "ended with 1") for i in range(9)]

    answer = text("tool_search", {"query": "zebras in jira"}, *others, JIRA)

    assert answer.startswith('No tool matches "zebras in jira"')
    assert "jira is not running: " in answer
    assert "more sources" in answer


def test_a_search_that_has_to_do_with_nothing_absent_reads_as_ever() -> None:
    assert text("tool_search", {"query": "send a mail"}, JIRA) == text(
        "tool_search", {"query": "send a mail"}
    )


def test_a_search_that_would_have_found_what_a_source_had_names_it_and_shows_none_of_it() -> None:
    ticket = Tool("jira__file_ticket", "File a ticket about a defect.", source="jira")
    away = AbsentSource("jira", "ended", 5.0, (ticket,))

    answer = text("tool_search", {"query": "file a ticket about a defect"}, away)

    assert "jira is not running: ended; it is tried again in 5 s." in answer
    assert "file_ticket" not in answer
    assert "jira" not in text("tool_search", {"query": "send a mail to somebody"}, away)


def test_hits_of_a_source_that_has_died_say_so() -> None:
    dead = AbsentSource("mail", "killed by SIGKILL", 12.0)

    answer = text("tool_search", {"query": "send a mail"}, dead)

    assert "mail__send" in answer
    assert "mail is not running: killed by SIGKILL; it is tried again in 12 s." in answer


def test_hits_of_a_listed_source_that_starts_for_the_first_time_wait_and_are_not_spoken_of() -> (
    None
):
    answer = text("tool_search", {"query": "notify somebody"}, AbsentSource("mail"))

    assert answer == text("tool_search", {"query": "notify somebody"})


def test_in_a_chinese_request_a_source_is_named_without_blanks() -> None:
    assert JIRA.is_named_in("在jira创建一个问题")
    assert not JIRA.is_named_in("the jirafa")


def test_words_that_any_server_may_be_called_name_none() -> None:
    away = AbsentSource("my-atlassian-mcp-server", "ended")

    assert away.is_named_in("ask Atlassian for it")
    assert not away.is_named_in("start my server with mcp")
    assert AbsentSource("server", "ended").is_named_in("the server, please")


@pytest.mark.parametrize("strategy", ["bridge", "reveal", "stub"])
def test_in_every_strategy_an_empty_result_names_what_is_absent(strategy: Any) -> None:
    made = folded(strategy=strategy)

    assert SAID in text("tool_search", {"query": "zzz qqq"}, JIRA, made=made)


# ---- a name


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "name",
    ["jira__create_issue", "Jira.create_issue", "mcp__jira__create_issue", "jira_create_issue"],
)
def test_a_call_of_an_absent_sources_tool_names_it_and_nobody_elses_tool(
    name: str, on: bool
) -> None:
    assert text(name, {}, JIRA, made=folded(on=on)) == (
        f'"{name}" is not available in this session. {SAID}'
    )


@pytest.mark.parametrize("how", ["tool_call", "tool_describe"])
def test_through_the_bridge_it_reads_the_same(how: str) -> None:
    answer = text(how, {"name": "jira__create_issue", "arguments": {}}, JIRA)

    assert answer == f'"jira__create_issue" is not available in this session. {SAID}'


def test_a_misspelt_name_of_a_dead_source_is_offered_that_sources_own() -> None:
    dead = AbsentSource("github", "ended", 9.0)

    answer = text("github__create_issues_now", {}, dead)

    assert "Did you mean github__create_issue" in answer
    assert "github is not running: ended; it is tried again in 9 s." in answer


def test_a_bare_name_that_an_absent_source_had_is_that_sources() -> None:
    ticket = Tool("jira__create_issue", "Create an issue.", source="jira")

    answer = text("create_issue", {}, AbsentSource("jira", "ended", 5.0, (ticket,)))

    assert "github" not in answer
    assert "jira is not running" in answer


def test_another_sources_prefix_is_not_an_absent_ones() -> None:
    away = AbsentSource("git", "ended", 5.0)

    for name in ("github__create_pull", "git_hub__create", "digit__x", "gitlab.create_issue"):
        assert not away.owns(name), name


def test_a_name_without_end_costs_no_time() -> None:
    began = time.process_time()

    assert "is not running" in text(f"jira__{'_a_.' * 500_000}", {}, JIRA)
    assert "is not running" not in text("__" * 500_000, {}, JIRA)

    assert time.process_time() - began < 5


def test_a_name_of_nobody_is_answered_as_ever() -> None:
    assert text("nothing_like_it", {}, JIRA) == text("nothing_like_it", {})


def test_what_is_there_runs_whoever_is_absent() -> None:
    made = folded()

    call = made.resolve("mail__send", {}, absent=[JIRA])

    assert not isinstance(call, Answer)
    assert call.tool.name == "mail__send"


def test_definitions_and_guidance_know_nothing_of_what_is_absent() -> None:
    made = folded()
    before = (list(made.tools), made.guidance)

    text("tool_search", {"query": "jira"}, JIRA, made=made)

    assert (list(made.tools), made.guidance) == before
    assert made.bridge.absent == ()


# ---- texts


def test_what_is_said_of_absent_sources() -> None:
    said = prompts.absent_source
    assert said("jira", None, 0.0) == "jira is still starting."
    assert said("jira", "ended", 0.0) == "jira is not running: ended; it is being tried again."
    assert said("jira", "ended", 0.2) == "jira is not running: ended; it is tried again in 1 s."
    assert said("jira", "no `command`", None) == "jira is not running: no `command`."
    assert prompts.absent_sources(["a is still starting."], 0, starting=True) == (
        "a is still starting. Its tools are not there yet: try again in a moment."
    )
    assert prompts.absent_sources(["a is not running: b."], 2, starting=False) == (
        "a is not running: b. So it is with 2 more sources. Their tools cannot be run now: "
        "tell the user where they are needed."
    )
    assert prompts.absent_in_short(2) == "(2 sources not running.)"


def test_a_call_that_a_dead_server_does_not_take_says_when_it_is_tried_again() -> None:
    said = prompts.server_down
    assert said("a__b", "a", "is not running: ended", lost=False, retry_in=39.5) == (
        "a__b failed: the server 'a' is not running: ended; it is tried again in 40 s. It was "
        "not run. Try once more then, or go on without it."
    )
    assert said("a__b", "a", "is not running: no", lost=False, retry_in=float("inf")) == (
        "a__b failed: the server 'a' is not running: no. It was not run. Tell the user, or go on "
        "without it."
    )


_ABSENT = st.builds(
    AbsentSource,
    st.text(min_size=1, max_size=80),
    st.one_of(st.none(), st.text(max_size=400)),
    st.one_of(st.none(), st.floats(0, 1e6)),
)


@given(
    st.lists(_ABSENT, max_size=12),
    st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=8),
    st.integers(100, 600),
)
def test_whatever_is_absent_an_answer_stays_inside_its_budget_and_on_its_line(
    absent: list[AbsentSource], needs: list[str], budget: int
) -> None:
    made = folded(search_max_tokens=budget)

    answer = made.resolve("tool_search", {"query": needs}, absent=absent)

    assert isinstance(answer, Answer)
    plain = made.resolve("tool_search", {"query": needs})
    assert isinstance(plain, Answer)
    assert estimate(answer.text) <= budget
    assert answer.hits == plain.hits
    said = answer.text.count("\n") - plain.text.count("\n")
    assert said <= 1


@given(st.lists(_ABSENT, max_size=12), st.text(max_size=100))
def test_no_absent_source_makes_a_name_run(absent: list[AbsentSource], name: str) -> None:
    made = folded()

    with_them = made.resolve(name, {}, absent=absent)

    assert isinstance(with_them, Answer) == isinstance(made.resolve(name, {}), Answer)


# ---- who may know


@pytest.mark.parametrize(
    ("scope", "reached"),
    [
        (Scope(), True),
        (Scope(("@jira",)), True),
        (Scope(("jira__*",)), True),
        (Scope(("jira__get_*",)), True),
        (Scope(("*__get_*",)), True),
        (Scope(("jira*",)), True),
        (Scope(("@github",)), False),
        (Scope(("github__*", "mail__send")), False),
        (Scope(("*_read",)), False),
        (Scope(()), False),
        (Scope(deny=("@jira",)), False),
        (Scope(deny=("JIRA__*",)), False),
        (Scope(deny=("*",)), False),
        (Scope(deny=("*delete*", "jira__drop_*")), True),
        (Scope().narrow(allow=("@github",)).narrow(), False),
        (Scope(("@jira",)).also(Scope(deny=("@jira",))), False),
    ],
)
def test_a_scope_reaches_a_source_that_nobody_knows_the_tools_of(
    scope: Scope, reached: bool
) -> None:
    assert scope.reaches("jira") is reached


def test_of_known_tools_one_must_be_in_the_scope() -> None:
    scope = Scope(("jira__get_*",))
    get = Tool("jira__get_issue", source="jira")
    drop = Tool("jira__drop_issue", source="jira")

    def seen(*listed: Tool, had: tuple[Tool, ...] = ()) -> AbsentSource | None:
        away = AbsentSource("jira", "ended", 1.0, had)
        return away.seen_by(scope.__contains__, listed, is_reached=True)

    assert seen(drop) is None
    assert seen(had=(drop,)) is None
    assert seen(get, drop) is not None
    kept = seen(had=(get, drop))
    assert kept is not None
    assert kept.tools == (get,)
