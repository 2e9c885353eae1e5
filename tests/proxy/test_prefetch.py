"""`toolfold.proxy.prefetch`: the likely tools, named behind what the user just said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.proxying import Between, Call, Refuse, Say, items_of, mcp_tools, texts_of
from support.sdk_agents import AGENTS, OWN
from toolfold import Settings
from toolfold.scope import Scope
from toolfold.store.entries import MemoryEntries

SURE = Settings(enabled="on", prefetch="sure")
RENAME = "mcp__files__rename_file"
ASKS = "Please rename the file notes.txt to diary.txt"
NOTE = "(Tools that may help, to be run with tool_call: mcp__files__rename_file(path: string"


def playing(*replies: Any, **more: Any) -> Between:
    left = iter(replies)
    given: dict[str, Any] = {"settings": SURE, **more}
    return Between(lambda asked: next(left, [Say("Done.")]), **given)


def wrapped(name: str) -> Call:
    return Call("tool_call", {"name": name, "arguments": {"path": "a"}})


def notes_in(body: bytes) -> list[tuple[int, str]]:
    """The notes of a request: where each stands, and what it says."""
    return [
        (place, item["content"])
        for place, item in enumerate(items_of(body))
        if item.get("role") == "user" and str(item.get("content")).startswith("(Tools that may")
    ]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("dialect", list(AGENTS))
def test_a_right_tool_is_named_behind_the_message_and_called_without_a_search(
    dialect: str, streamed: bool
) -> None:
    wire = playing([wrapped(RENAME)], [Say("Renamed.")])
    agent = AGENTS[dialect](wire, streamed)

    made = agent.talk(ASKS)

    first, second = (asked.body for asked in wire.asked)
    [(place, note)] = notes_in(first)
    assert [call.name for call in made] == [RENAME]
    assert place == 1 and note.startswith(NOTE)
    assert items_of(first)[0] == {"role": "user", "content": ASKS}
    assert notes_in(second) == [(place, note)]
    assert texts_of(second)[:2] == texts_of(first)
    assert [report.prefetched for report in wire.reports] == [
        len(note.split("; ")), 0
    ]  # fmt: skip


@pytest.mark.parametrize("dialect", list(AGENTS))
@given(
    said=st.lists(
        st.sampled_from(
            [
                ASKS,
                "Delete the file old.log",
                "Thanks!",
                "Which of those is the largest?",
                "Upload a file and then archive the file",
                "What is the capital of France?",
            ]
        ),
        min_size=2,
        max_size=4,
    ),
    replies=st.lists(st.sampled_from(["say", "call", "search", "own"]), min_size=0, max_size=8),
)
@settings(max_examples=12, deadline=None)
def test_consecutive_requests_of_a_conversation_share_their_prefix(
    dialect: str, said: Sequence[str], replies: Sequence[str]
) -> None:
    parts = {
        "say": [Say("Yes.")],
        "call": [wrapped(RENAME)],
        "search": [Call("tool_search", {"query": "delete a file"})],
        "own": [Call("shell", {"path": "a"})],
    }
    wire = playing(*(parts[reply] for reply in replies))
    agent = AGENTS[dialect](wire)
    for text in said:
        agent.talk(text)

    sent = [asked.body for asked in wire.asked]
    tools = [json.loads(body)["tools"] for body in sent]
    for before, after in pairwise(sent):
        assert texts_of(after)[: len(texts_of(before))] == texts_of(before)
    assert all(own == tools[0] for own in tools)
    for place, _ in notes_in(sent[-1]):
        assert items_of(sent[-1])[place - 1]["content"] in said


@pytest.mark.parametrize("dialect", list(AGENTS))
def test_what_the_conversation_has_seen_is_not_named_again(dialect: str) -> None:
    wire = playing([wrapped(RENAME)], [Say("Renamed.")], [Say("That too.")])
    agent = AGENTS[dialect](wire)
    agent.talk(ASKS)
    agent.talk("And rename the file todo.txt to done.txt")

    assert len(notes_in(wire.asked[-1].body)) == 1


@pytest.mark.parametrize("dialect", list(AGENTS))
def test_a_lost_store_costs_the_note_and_nothing_else(dialect: str) -> None:
    wire = playing([Say("Which one?")], [Say("Renamed.")])
    agent = AGENTS[dialect](wire)
    agent.talk(ASKS)
    wire.store = MemoryEntries()
    agent.talk("Thanks!")

    assert notes_in(wire.asked[0].body)
    assert texts_of(wire.asked[-1].body) == texts_of(wire.given[-1])


@pytest.mark.parametrize("text", ["Thanks, perfect!", "ok", "Good morning!", "Let's move on."])
def test_nothing_is_named_where_nothing_is_asked_for(text: str) -> None:
    wire = playing()
    AGENTS["openai-chat"](wire).talk(text)

    assert texts_of(wire.asked[0].body) == texts_of(wire.given[0])


@pytest.mark.parametrize(
    ("dialect", "choice"),
    [
        ("openai-chat", "none"),
        ("openai-responses", "none"),
        ("anthropic-messages", {"type": "none"}),
    ],
)
def test_nothing_is_named_where_no_tool_may_be_called(dialect: str, choice: Any) -> None:
    wire = playing()
    AGENTS[dialect](wire, more={"tool_choice": choice}).talk(ASKS)

    assert texts_of(wire.asked[0].body) == texts_of(wire.given[0])


def test_off_is_off() -> None:
    wire = playing(settings=Settings(enabled="on", prefetch="off"))
    AGENTS["anthropic-messages"](wire).talk(ASKS)

    assert texts_of(wire.asked[0].body) == texts_of(wire.given[0])


REMINDED = [
    {"type": "text", "text": "<system-reminder>\nDelete a file when done.\n</system-reminder>"},
    {"type": "text", "text": ASKS},
]


def test_the_words_of_the_user_are_found_behind_a_clients_reminders() -> None:
    wire = playing()
    agent = AGENTS["anthropic-messages"](wire)
    agent.items.append({"role": "user", "content": REMINDED})
    agent.items.append({"role": "system", "content": "The user is in the folder /home."})
    agent.ask()

    [(place, note)] = notes_in(wire.asked[0].body)
    assert place == 1 and note.startswith(NOTE)


def test_a_message_of_reminders_alone_is_passed_over() -> None:
    wire = playing()
    agent = AGENTS["openai-responses"](wire)
    agent.say(ASKS)
    agent.say("<environment_context>\n  <cwd>delete the file</cwd>\n</environment_context>")
    agent.ask()

    [(place, note)] = notes_in(wire.asked[0].body)
    assert place == 1 and note.startswith(NOTE)


def test_one_text_in_place_of_a_conversation_gets_its_note() -> None:
    wire = playing([Call("tool_search", {"query": "delete a file"})], [Say("Done.")])
    body = {"model": "m", "input": ASKS, "tools": mcp_tools("openai-responses", own=OWN)}
    wire.answer("/v1/responses", json.dumps(body).encode())

    first, second = (items_of(asked.body) for asked in wire.asked)
    assert first[0] == {"role": "user", "content": ASKS}
    assert first[1]["content"].startswith(NOTE)
    assert second[:2] == first and len(second) == 4


def test_a_model_whose_roles_must_alternate_is_asked_again_without_a_note_and_told_none_later() -> (
    None
):
    def strict(asked: Any) -> Any:
        if notes_in(asked.body):
            message = "Jinja Exception: Conversation roles must alternate user/assistant/..."
            return Refuse(500, {"error": {"message": message}})
        return [Say("Here I am.")]

    wire = Between(strict, settings=SURE, host="http://strict.test")
    agent = AGENTS["openai-chat"](wire)
    agent.talk(ASKS)
    agent.talk("Delete the file old.log")

    assert len(wire.asked) == 3
    assert [bool(notes_in(asked.body)) for asked in wire.asked] == [True, False, False]
    assert [message["content"] for message in agent.items[1::2]] == ["Here I am."] * 2


def test_an_error_about_something_else_is_the_clients() -> None:
    wire = playing(Refuse(400, {"error": {"message": "max_tokens is too large"}}))
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": ASKS}],
        "tools": mcp_tools("openai-chat", own=OWN),
    }
    status, _, answer = wire.answer("/v1/chat/completions", json.dumps(body).encode())

    assert (status, b"max_tokens" in answer, len(wire.asked)) == (400, True, 1)


def test_no_note_tells_of_a_tool_that_is_not_there_for_this_caller() -> None:
    store = MemoryEntries()
    wide = playing(store=store)
    AGENTS["openai-chat"](wide).talk(ASKS)
    narrow = playing(store=store, scope=Scope(deny=("*rename*",)))
    AGENTS["openai-chat"](narrow).talk(ASKS)

    assert notes_in(wide.asked[0].body)
    assert b"rename_file" not in narrow.asked[0].body


def test_a_request_with_an_enormous_paste_is_answered_by_its_first_words() -> None:
    log = "\n".join(
        f"2026-11-16T10:00:{n % 60:02} ERROR [w-{n}] delete /x/{n}" for n in range(5000)
    )
    wire = playing()
    AGENTS["openai-chat"](wire).talk(f"{ASKS}\n\n{log}")
    silent = playing()
    AGENTS["openai-chat"](silent).talk(log)

    assert notes_in(wire.asked[0].body)[0][1].startswith(NOTE)
    assert notes_in(silent.asked[0].body) == []
