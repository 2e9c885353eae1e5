"""What a memory changes in a search, and what it never does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.memories import (
    TOPICS,
    UNSEEN,
    bridge_with,
    found_first,
    opaque_tools,
    taught,
    teach,
)
from toolfold import Answer, Session, Settings, Tool, fold
from toolfold.memory import Memory, MemoryRecord, MemoryRecordError, SearchMemory, Use
from toolfold.search import Match

REQUESTS = st.one_of(st.sampled_from(list(UNSEEN.values())), st.text(max_size=40))


@pytest.fixture(scope="module")
def learnt() -> Memory:
    return taught()


def test_what_searches_led_to_is_found_for_requests_like_them(learnt: Memory) -> None:
    assert found_first(None) <= 1
    assert found_first(learnt) == len(UNSEEN)


def test_a_memory_keeps_the_protocol(learnt: Memory) -> None:
    assert isinstance(learnt, SearchMemory)
    assert isinstance(learnt.of("ann"), SearchMemory)


@given(REQUESTS)
def test_an_empty_memory_changes_nothing(request: str) -> None:
    with_it, without = bridge_with(Memory()), bridge_with(None)

    assert with_it.search(request, 5) == without.search(request, 5)


@given(REQUESTS)
def test_a_memory_without_a_tool_of_the_catalog_changes_nothing(request: str) -> None:
    others = [Tool(tool.name, tool.description + " Anew.", {}) for tool in opaque_tools()]

    with_it, without = bridge_with(_LEARNT, others), bridge_with(None, others)

    assert with_it.search(request, 5) == without.search(request, 5)


_LEARNT = taught()


@given(st.sets(st.sampled_from(sorted(TOPICS)), min_size=1), REQUESTS)
def test_nothing_outside_the_catalog_is_found_and_no_word_of_a_record_is_said(
    names: set[str], request: str
) -> None:
    part = [tool for tool in opaque_tools() if tool.name in names]
    tools = [part[0], *part[1:]]
    folded = fold(tools, settings=Settings(enabled="on", cache_dir="off"), memory=_LEARNT)

    answer = folded.resolve("tool_search", {"query": request})

    assert isinstance(answer, Answer)
    assert {hit.name for hit in answer.hits} <= names
    said = answer.text.replace(request, "")
    kept = {text for requests in TOPICS.values() for text in requests}
    assert not [text for text in kept if text in said]


@given(st.sampled_from(["bridge", "reveal", "stub"]), st.sampled_from(["off", "sources", "names"]))
def test_lists_definitions_and_guidance_are_the_same_with_and_without(
    strategy: str, listing: str
) -> None:
    settings = Settings(enabled="on", strategy=strategy, listing=listing, cache_dir="off")  # type: ignore[arg-type]
    sessions = (Session(), Session().reveal(["svc_01", "svc_04"]))

    for session in sessions:
        plain = fold(opaque_tools(), settings=settings, session=session)
        with_it = fold(opaque_tools(), settings=settings, session=session, memory=_LEARNT)
        assert json.dumps(with_it.tools) == json.dumps(plain.tools)
        assert with_it.guidance == plain.guidance
        assert with_it.report == plain.report


def test_the_same_memory_gives_the_same_answers(learnt: Memory) -> None:
    again = Memory()
    again.imported(learnt.exported())

    one, other = bridge_with(learnt), bridge_with(again)

    assert [one.search(text, 5) for text in UNSEEN.values()] == [
        other.search(text, 5) for text in UNSEEN.values()
    ]


def test_a_tool_that_changed_is_another_tool(learnt: Memory) -> None:
    changed = opaque_tools(" (new)")

    assert found_first(learnt, changed) == found_first(None, changed)


def test_calls_that_did_not_work_speak_for_nothing() -> None:
    memory = Memory()
    for tool in opaque_tools():
        for request in TOPICS[tool.name]:
            memory.learn(Use(request, tool.name, tool.digest, worked=False))
    memory.flush()

    assert found_first(memory) <= 1


def test_few_requests_say_nothing() -> None:
    memory, tool = Memory(), opaque_tools()[0]
    memory.learn(Use(TOPICS[tool.name][0], tool.name, tool.digest))
    memory.flush()

    assert bridge_with(memory).search(UNSEEN[tool.name], 5) == bridge_with(None).search(
        UNSEEN[tool.name], 5
    )


# ---- whose


def test_everybodys_own_record_counts_for_nobody_else() -> None:
    memory = taught(share="principal")

    assert found_first(memory.of("ann")) == len(UNSEEN)
    assert found_first(memory.of("ben")) <= 1


def test_a_shared_record_counts_for_all() -> None:
    assert found_first(taught(share="all").of("ben")) == len(UNSEEN)


def test_who_calls_one_tool_all_day_does_not_move_it_before_everything() -> None:
    memory = taught()
    victim = opaque_tools()[7]
    words = [word for requests in TOPICS.values() for text in requests for word in text.split()]
    for number in range(2_000):
        request = " ".join(words[(number * step) % len(words)] for step in (1, 3, 7, 11))
        memory.learn(Use(request, victim.name, victim.digest, principal="mallory"))
        if number % 500 == 0:
            memory.flush()
    memory.flush()
    bridge = bridge_with(memory.of("ann"))

    assert sum(record.principal == "mallory" for record in memory.records()) <= 200
    found = [bridge.search(text, 5) for text in UNSEEN.values()]
    right = sum(
        name in {hit.name for hit in hits} for name, hits in zip(UNSEEN, found, strict=True)
    )
    assert right == len(UNSEEN)


def test_the_same_request_again_is_counted_and_not_kept_again() -> None:
    memory, tool = Memory(), opaque_tools()[0]
    for _ in range(50):
        memory.learn(Use("book a flight to Lisbon", tool.name, tool.digest))

    (record,) = memory.records()

    assert record.worked == 50
    assert memory.size == 1


# ---- what is shown where nothing was found


def test_a_tool_comes_over_the_floor_only_with_a_strong_record(learnt: Memory) -> None:
    from dataclasses import replace

    from toolfold.bridge import Bridge
    from toolfold.catalog import Catalog

    floor = Settings(enabled="on", relevance_floor=0.2, cache_dir="off")
    bridge = replace(Bridge.over(Catalog(opaque_tools()), floor), memory=learnt)

    assert not bridge.search("who won the chess championship", 5)
    assert not bridge.search("qwzx vbnm", 5)


def test_matches_of_a_ranker_without_probabilities_stay_as_they_are(learnt: Memory) -> None:
    from dataclasses import replace

    from toolfold.search.lexical import BM25

    bridge = replace(bridge_with(learnt), ranker=BM25())

    assert bridge.search("service 03", 3) == replace(bridge, memory=None).search("service 03", 3)


# ---- said to a person


def test_what_a_memory_moved_is_explained(learnt: Memory) -> None:
    bridge = bridge_with(learnt)
    hit = bridge.search(UNSEEN["svc_09"], 1)[0]

    why = bridge.explain(hit)

    assert "1st instead of" in why
    assert why.endswith("times for requests like this")


# ---- used together


def test_tools_that_were_used_in_one_task_are_named_behind_a_hit() -> None:
    memory = taught()
    tools = opaque_tools()
    one, other = ((tool.name, tool.digest) for tool in (tools[8], tools[3]))
    for _ in range(3):
        memory.together("ann", one, other)
    memory.flush()
    folded = fold(tools, settings=Settings(enabled="on", cache_dir="off"), memory=memory)

    answer = folded.resolve("tool_search", {"query": "turn off the lamp"})

    assert isinstance(answer, Answer)
    assert memory.beside(tools[8], folded.catalog) == [tools[3]]
    assert not memory.of("ann").beside(opaque_tools(" (new)")[8], folded.catalog)


# ---- carried elsewhere


def test_what_one_memory_exports_another_takes() -> None:
    memory = taught()
    lines = list(memory.exported())

    other = Memory()

    assert other.imported(lines) == len(lines) == 30
    assert found_first(other) == len(UNSEEN)
    assert {r.request for r in other.records()} == {r.request for r in memory.records()}


@pytest.mark.parametrize("line", ["", "{", "[]", '{"request": "x"}', '{"request": 1, "tool": 2}'])
def test_a_line_that_is_no_record_is_refused_and_nothing_is_kept(line: str) -> None:
    good = MemoryRecord("book a flight", "svc_01", "d").line()
    memory = Memory()
    if not line:
        assert memory.imported([good, line]) == 1
        return
    with pytest.raises(MemoryRecordError):
        memory.imported([good, line])

    assert not list(memory.records())


@given(st.dictionaries(st.text(max_size=8), st.none() | st.integers() | st.text(max_size=5)))
def test_whatever_else_stands_in_a_record_it_can_be_read(more: dict[str, object]) -> None:
    line = json.dumps({**more, "request": "book a flight", "tool": "svc_01", "digest": "d"})

    assert MemoryRecord.read(line).tool == "svc_01"


def test_imported_requests_are_redacted() -> None:
    memory = Memory()
    key = "sk-" + "a1B2" * 8
    memory.imported([MemoryRecord(f"log in with {key} please", "svc_01", "d").line()])

    (record,) = memory.records()

    assert key not in record.request
    assert "log in" in record.request


def test_matches_without_any_score_pass(learnt: Memory) -> None:
    found = [Match(0, 0.0)]

    assert list(learnt.weighed("turn off the lamp", found, bridge_with(None).catalog).matches)


def test_two_who_teach_at_once_lose_nothing(tmp_path: Path) -> None:
    one, other = Memory(tmp_path / "m.sqlite"), Memory(tmp_path / "m.sqlite")
    tools = opaque_tools()
    for number, tool in enumerate(tools):
        (one if number % 2 else other).learn(Use(TOPICS[tool.name][0], tool.name, tool.digest))
    one.flush()
    other.flush()

    assert one.size == other.size == len(tools)
    assert {r.tool for r in one.records()} == {r.tool for r in other.records()}


def test_what_another_process_learns_counts_here(tmp_path: Path) -> None:
    here, there = Memory(tmp_path / "m.sqlite"), Memory(tmp_path / "m.sqlite")
    assert found_first(here) <= 1
    teach(there)

    assert here.size == 30
    assert found_first(here) == len(UNSEEN)
