"""`toolfold.runtime._prefetch`: when the likely tools are named, and what a message asks for."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.running import wait
from toolfold import ConfigError, Settings, fold
from toolfold.demo import CATALOG_FILE
from toolfold.evaluation import load_corpus, measure_prefetch
from toolfold.runtime import (
    Agent,
    Limits,
    PendingCall,
    Profile,
    Registry,
    ScriptedModel,
    UserMessage,
    says,
)
from toolfold.runtime._prefetch import prefetched
from toolfold.runtime._request_words import asks_nothing, request_words
from toolfold.runtime.model import Request, prompt_text
from toolfold.search import Match

TURNS = Path(__file__).parents[1] / "data" / "turns.jsonl"
TOOLS = [json.loads(line) for line in CATALOG_FILE.read_text("utf-8").splitlines()]
SURE = Settings(enabled="on", prefetch="sure", cache_dir="off")
ALWAYS = Settings(enabled="on", prefetch="always", cache_dir="off")
ASKS = "Turn off the lights in the living room."


def note(text: str, settings: Settings = SURE, **more: Any) -> str:
    return prefetched(fold(TOOLS, settings=settings), text, **more)[0]


def registry(tools: list[Any]) -> Registry:
    async def run(call: PendingCall) -> str:
        return "done"

    made = Registry()
    for tool in fold(tools).catalog:
        made.add(tool, run)
    return made


def notes(*texts: str, **more: Any) -> list[str]:
    """What an agent says behind each message, the model answering in a word."""
    given: dict[str, Any] = {"settings": SURE, **more}
    agent = Agent(ScriptedModel([says("Ok.")] * len(texts)), registry(TOOLS), **given)
    conversation = agent.conversation()
    for text in texts:
        wait(conversation.ask(text))
    return [m.note for m in conversation.messages if isinstance(m, UserMessage)]


# ---- when it speaks


def test_turns_that_need_no_tool_get_no_note_and_tasks_do() -> None:
    corpus = load_corpus(CATALOG_FILE.parent, queries=TURNS)

    sure, always = (measure_prefetch(corpus, Settings(), mode).metrics for mode in MODES)

    assert len(corpus.requests) > 60
    assert sure["unserved_spoken"] <= 0.02 and always["unserved_spoken"] <= 0.07
    assert sure["spoken"] >= 0.9 and sure["right"] >= 0.95
    assert sure["trips"] <= 0.4 < sure["trips_before"]
    assert sure["tokens"] < sure["tokens_before"] / 2


MODES: Any = ("sure", "always")


def test_sure_is_silent_where_always_says_that_nothing_is_close() -> None:
    vague = "what happened at the standup?"

    assert note(vague) == ""
    assert note(vague, ALWAYS).startswith("(No close match; nearest tools, to be run with tool_")


def test_off_says_nothing() -> None:
    assert note(ASKS, Settings(enabled="on", prefetch="off")) == ""


def test_a_ranker_without_probabilities_is_never_sure() -> None:
    class First:
        name = "first"
        calibrated = False

        def searcher(self, tools: Any) -> Any:
            return self

        def search(self, query: str, limit: int) -> list[Match]:
            return [Match(0, 100.0)]

        def explain(self, query: str, position: int) -> str:
            return ""

    def said(settings: Settings) -> str:
        return prefetched(fold(TOOLS, settings=settings, ranker=First()), ASKS)[0]

    assert said(SURE) == ""
    assert said(ALWAYS).startswith("(Tools that may help")


def test_an_unlikely_tool_is_not_named_beside_a_sure_one() -> None:
    _, named = prefetched(fold(TOOLS, settings=SURE), "Merge the pull request 12")
    _, with_always = prefetched(fold(TOOLS, settings=ALWAYS), "Merge the pull request 12")

    assert [hit.name for hit in named] == [
        "forge__merge_pull_request",
        "forge__create_pull_request",
    ]
    assert len(with_always) == 3


def test_an_open_tool_that_serves_the_message_better_is_left_alone() -> None:
    text = "Read the file plan.md from the folder"
    own = {
        "name": "read_file",
        "description": "Read a text file of the working folder.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    folded = fold([own, *TOOLS], settings=SURE, core=("read_file",))

    assert note(text) != ""
    assert prefetched(folded, text)[0] == ""


@pytest.mark.parametrize("strategy", ["stub", "reveal"])
def test_strategies_without_a_tool_that_calls_others_say_nothing(strategy: Any) -> None:
    assert note(ASKS, Settings(enabled="on", prefetch="always", strategy=strategy)) == ""


def test_a_provider_that_defers_is_told_nothing() -> None:
    folded = fold(
        TOOLS,
        settings=ALWAYS,
        api="anthropic-messages",
        host="api.anthropic.com",
        model="claude-sonnet-4-5",
    )

    assert folded.is_native
    assert prefetched(folded, ASKS) == ("", ())


# ---- in a conversation


def test_an_agent_speaks_where_it_is_sure_unless_told_otherwise() -> None:
    plain = Settings(enabled="on", cache_dir="off")

    assert notes(ASKS, settings=plain)[0].startswith("(Tools that may help")
    assert notes(ASKS, prefetch="off") == [""]
    assert notes(ASKS, profile=Profile("quiet", {"prefetch": "off"}), settings=plain) == [""]


@pytest.mark.parametrize("old", [True, False, "yes"])
def test_what_was_true_or_false_is_refused_with_what_to_write(old: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Agent(ScriptedModel([]), Registry(), prefetch=old)

    assert caught.value.message == f"`prefetch` is {old!r}"
    assert caught.value.hint == (
        "write 'off', 'sure' or 'always'; what was True is 'always', False 'off'"
    )


def test_what_the_model_has_read_is_not_said_again_until_it_has_left_the_prompt() -> None:
    other = "Turn off the lights in the kitchen, please."

    assert notes(ASKS, other)[1] == ""
    kept, again = notes(
        ASKS, "Describe the table users.", ASKS, limits=Limits(discovery_tokens=60)
    )[::2]
    assert kept and again == kept


def test_another_need_of_the_same_conversation_is_said() -> None:
    assert "database__describe_table(" in notes(ASKS, "Describe the table users.")[1]


@given(texts=st.lists(st.sampled_from([ASKS, "Thanks!", "Merge it.", "Why?"]), max_size=5))
@settings(max_examples=10, deadline=None)
def test_what_was_sent_before_stays_as_it_was(texts: list[str]) -> None:
    model = ScriptedModel([says("Ok.")] * len(texts))
    conversation = Agent(model, registry(TOOLS[:40]), settings=ALWAYS).conversation()
    sent: list[str] = []
    for text in texts:
        wait(conversation.ask(text))
        sent.append(prompt_text(Request(model.requests[-1].messages)))

    assert all(after.startswith(before) for before, after in pairwise(sent))


# ---- the words of a request


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plain words", "plain words"),
        ("<system-reminder>do this</system-reminder>\nList my files", "List my files"),
        ("<a>x</a><b c='d'>y</b>", ""),
        ("see <this> and that", "see <this> and that"),
        ("<env>x</env>\n<user_query>\nBook a <i>quiet</i> room\n</user_query>", "Book a  room"),
        ("Why does this fail?\n```\nTraceback: delete\n```\n", "Why does this fail?"),
        ("Look:\n```\nnot closed", "Look:"),
        ("", ""),
    ],
)
def test_the_words_of_a_request_are_what_stands_outside_tags_and_code(
    text: str, words: str
) -> None:
    assert request_words(text) == words


def test_of_a_long_message_its_beginning_and_its_end_are_read_where_somebody_wrote_them() -> None:
    log = "\n".join(f"[{n:05}] 10:00:{n % 60:02} GET /api/v1/x{n}?a={n} 500" for n in range(20_000))

    assert request_words(f"What went wrong here?\n\n{log}") == "What went wrong here?"
    assert request_words(f"{log}\n\nPlease open an issue about it.") == (
        "Please open an issue about it."
    )
    assert request_words(f"First line asks\n{log}") == "First line asks"
    assert request_words(log) == ""
    assert len(request_words("so on and " * 10_000)) <= 1_200


@given(st.text(st.sampled_from("<a></b>` \n.xé\u3042"), max_size=400))
def test_any_text_has_words_of_its_own_or_none(text: str) -> None:
    words = request_words(text)

    assert len(words) <= len(text)
    assert asks_nothing(words, is_later=True) or not asks_nothing(words, is_later=False)


def test_unclosed_tags_without_number_take_no_time() -> None:
    assert request_words("".join(f"<t{n}>" for n in range(200_000))) is not None


@pytest.mark.parametrize(
    ("text", "first", "later"),
    [
        ("Thanks, that's great!", True, True),
        ("ok", True, True),
        ("", True, True),
        ("Is it raining in Oslo?", False, True),
        ("Which of those is cheapest?", False, True),
        ("Put your last answer in a table", False, True),
        ("will I need an umbrella?", False, False),
        ("rename it", False, False),
        ("天気を教えてください", False, False),
    ],
)
def test_a_message_that_asks_for_nothing_is_known_by_its_words(
    text: str, first: bool, later: bool
) -> None:
    assert asks_nothing(text, is_later=False) is first
    assert asks_nothing(text, is_later=True) is later
