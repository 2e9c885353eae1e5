"""The stub strategy: names and descriptions stay, parameters come when they are asked for.

This is the capability of seed 004; each of its tests has its like here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from support.outcomes import answered, invoked
from support.strategies import lists_of, name_of
from toolfold import Folded, Session, SessionStore, Settings, Tool, fold
from toolfold.settings import load_settings
from toolfold.tokens import compact

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
STUB = {"type": "object", "properties": {}}
SURFACE = Path(__file__).parent / "data" / "agent_19_tools.json"


def surface(count: int = 15) -> list[dict[str, Any]]:
    return [
        {"name": f"tool_{i:02}", "description": f"Work on thing {i}.", "input_schema": SCHEMA}
        for i in range(count)
    ]


def stubs(tools: Any, **arguments: Any) -> Folded:
    chosen: dict[str, Any] = {"strategy": "stub", **arguments.pop("settings", {})}
    return fold(tools, settings=Settings(**chosen), **arguments)


def schema_of(folded: Folded, name: str) -> Any:
    return next(tool for tool in folded.tools if tool["name"] == name)["input_schema"]


def test_below_the_threshold_full_schemas_are_sent_unchanged() -> None:
    tools = surface(14)

    assert stubs(tools).tools == tools


def test_above_the_threshold_parameters_are_stripped_and_the_rest_stays() -> None:
    folded = stubs(surface())

    assert folded.tools[:2] == [
        {"name": "tool_00", "description": "Work on thing 0.", "input_schema": STUB},
        {"name": "tool_01", "description": "Work on thing 1.", "input_schema": STUB},
    ]
    assert [tool["name"] for tool in folded.tools[15:]] == ["tool_search"]
    assert folded.guidance == (
        "Some of your tools are listed without their parameters. Before you use one, call "
        "tool_search with its name to load them."
    )
    assert (folded.report.tools_before, folded.report.tools_after) == (15, 16)
    assert (folded.report.kept, folded.report.deferred) == (0, 15)


def test_no_stub_is_larger_than_the_schema_it_replaces() -> None:
    small = {"name": "now", "description": "Tell the time.", "input_schema": {"type": "object"}}
    folded = stubs([*surface(), small])

    assert folded.tools[15] is small
    assert (folded.report.kept, folded.report.deferred) == (1, 15)


def test_how_to_load_parameters_is_said_once_for_all_tools() -> None:
    sent = json.dumps(stubs(surface(100)).tools)

    assert sent.count("tool_search") == sent.count("Load the parameters") == 1


def test_never_defer_and_the_search_tool_keep_their_schemas() -> None:
    tools = [*surface(), {"name": "own", "policy": "never", "parameters": SCHEMA}]
    folded = stubs(
        tools, settings={"never_defer": ("tool_03",)}, core=["tool_04"], shape="anthropic"
    )

    assert schema_of(folded, "tool_03") == schema_of(folded, "tool_04") == SCHEMA
    assert schema_of(folded, "own") == SCHEMA
    assert schema_of(folded, "tool_05") == STUB
    assert schema_of(folded, "tool_search")["required"] == ["query"]


def test_the_never_defer_list_of_a_file_adds_to_that_of_the_code(tmp_path: Path) -> None:
    file = tmp_path / "toolfold.yaml"
    file.write_text("tools: {tool_search: {strategy: stub, never_defer: [tool_01]}}", "utf-8")

    folded = fold(surface(), settings=load_settings(file, environ={}, never_defer=["tool_02"]))

    assert [tool["name"] for tool in folded.tools if tool["input_schema"] == SCHEMA] == [
        "tool_01",
        "tool_02",
    ]


def test_a_search_returns_the_full_schema_of_what_it_finds() -> None:
    answer = answered(stubs(surface()).resolve("tool_search", {"query": "tool_03"}))

    assert answer.text == (
        '1 of 15 tools for "tool_03":\n'
        '- {"name":"tool_03","description":"Work on thing 3.","parameters":{"type":"object",'
        '"properties":{"path":{"type":"string"}},"required":["path"]}}\n'
        "Their parameters are loaded. Call them directly."
    )
    assert answer.session.revealed == ("tool_03",)


def test_a_revealed_tool_has_its_full_schema_from_the_next_assembly_on() -> None:
    tools = surface()
    first = stubs(tools)
    found = first.resolve("tool_search", {"query": "tool_03"})

    second = stubs(tools, session=found.session)
    third = stubs(tools, session=second.resolve("tool_search", {"query": "tool_07"}).session)

    assert schema_of(first, "tool_03") == STUB
    assert second.tools[3] is tools[3]
    assert [i for i in range(15) if third.tools[i] is tools[i]] == [3, 7]
    assert (third.report.kept, third.report.deferred) == (2, 13)
    assert [tool["name"] for tool in third.tools] == [tool["name"] for tool in first.tools]


def test_the_tools_stay_callable_whether_revealed_or_not() -> None:
    folded = stubs(surface())

    hidden = invoked(folded.resolve("tool_05", {"path": "a"}))
    wrong = answered(folded.resolve("tool_05", {}))

    assert (hidden.tool.name, hidden.arguments, hidden.via) == ("tool_05", {"path": "a"}, "direct")
    assert wrong.text == (
        "tool_05 was not run. missing argument 'path'. Signature: tool_05(path: string)"
    )


@pytest.mark.parametrize("name", ["tool_describe", "tool_call"])
def test_only_the_search_tool_is_added(name: str) -> None:
    answer = answered(stubs(surface()).resolve(name, {"name": "tool_01", "arguments": {}}))

    assert answer.is_error
    assert answer.text.startswith(f'"{name}" is not available in this session.')


def test_reveals_are_isolated_per_session() -> None:
    store = SessionStore()
    tools = surface()
    folded = stubs(tools, session=store.get("a"))
    store.put("a", folded.resolve("tool_search", {"query": "tool_03"}).session)

    assert schema_of(stubs(tools, session=store.get("a")), "tool_03") == SCHEMA
    assert schema_of(stubs(tools, session=store.get("b")), "tool_03") == STUB
    assert schema_of(stubs(tools), "tool_03") == STUB


def test_the_store_evicts_the_session_not_used_for_the_longest_time() -> None:
    store = SessionStore(limit=2)
    for key in ("a", "b"):
        store.put(key, Session(revealed=(key,)))
    store.get("a")
    store.put("c", Session(revealed=("c",)))

    assert len(store) == 2
    assert store.get("a").revealed == ("a",)
    assert store.get("b") == Session()
    assert store.get("c").revealed == ("c",)


def test_a_session_remembers_a_bounded_number_of_reveals() -> None:
    session = Session().reveal(f"t{i}" for i in range(600))

    assert len(session.revealed) == 512
    assert session.revealed[-1] == "t599"


def test_a_revealed_name_that_is_gone_or_out_of_scope_reveals_nothing() -> None:
    from toolfold import Scope

    session = Session(revealed=("tool_03", "gone"))

    folded = stubs(surface(16), session=session, scope=Scope(deny=("tool_03",)))

    assert "tool_03" not in json.dumps(folded.tools)
    assert folded.report.deferred == 15


# ---- ranking


def ranked(tools: list[Tool], query: str) -> list[tuple[str, float]]:
    folded = stubs(tools, settings={"enabled": "on"})
    return [
        (hit.name, hit.score)
        for hit in answered(folded.resolve("tool_search", {"query": query})).hits
    ]


def test_words_of_the_query_are_counted() -> None:
    tools = [Tool("a", "alpha beta"), Tool("b", "alpha beta gamma"), Tool("c", "delta")]

    assert ranked(tools, "beta gamma alpha") == [("b", 3), ("a", 2)]


def test_a_word_in_the_name_weighs_three_and_elsewhere_one() -> None:
    tools = [Tool("other", "read read read a file"), Tool("read_it", "Nothing.")]

    assert ranked(tools, "read") == [("read_it", 3)]
    assert ranked(tools, "read file") == [("read_it", 3), ("other", 2)]


@pytest.mark.parametrize("query", ["read", "`read`", '"read"', "'read'", "READ"])
def test_the_exact_name_dominates_quoted_or_not(query: str) -> None:
    tools = [Tool("read_file", "read"), Tool("read", "x"), Tool("reader", "read")]

    assert ranked(tools, query) == [("read", 103)]


def test_what_scores_less_than_half_of_the_best_is_cut() -> None:
    tools = [
        Tool("send_mail", "letters"),
        Tool("mail", "x"),
        Tool("c", "send mail"),
        Tool("d", "mail"),
    ]

    assert ranked(tools, "send mail now") == [("send_mail", 6), ("mail", 3)]


def test_at_most_eight_tools_are_found_and_revealed() -> None:
    tools = [Tool(f"mail_{i}", "x") for i in range(20)]
    folded = stubs(tools)

    for query in ("mail", ["mail", "mail_1", "mail_2"], "mail_1 | mail_2 | mail", "mail"):
        answer = answered(folded.resolve("tool_search", {"query": query, "limit": 50}))
        assert len(answer.hits) <= 8
        assert len(answer.session.revealed) <= 8
    assert [hit.name for hit in answer.hits] == [f"mail_{i}" for i in range(8)]


def test_a_search_finds_only_tools_that_are_listed_without_parameters() -> None:
    tools = [Tool("search_mail", "x"), Tool("tool_box", "tool_search")]

    assert ranked(tools, "tool_search") == [("tool_box", 1)]
    folded = stubs(tools, settings={"enabled": "on"}, core=["search_mail"])
    answer = answered(folded.resolve("tool_search", {"query": "search_mail"}))
    assert answer.text == "search_mail is one of your listed tools: call it directly."


def test_no_match_lists_the_names_to_choose_from() -> None:
    answer = answered(stubs(surface()).resolve("tool_search", {"query": "zebra"}))

    assert not answer.is_error
    assert answer.hits == ()
    assert answer.text == (
        'No tool matches "zebra" (15 tools searched). Try other words, or go on without a tool.\n'
        "Tools: " + ", ".join(f"tool_{i:02}" for i in range(15))
    )


@pytest.mark.parametrize("arguments", [{"query": ""}, {"query": " ... "}, {}, None])
def test_an_empty_query_lists_the_names_to_browse(arguments: Any) -> None:
    answer = answered(stubs(surface()).resolve("tool_search", arguments))

    assert not answer.is_error
    assert answer.text == "Tools: " + ", ".join(f"tool_{i:02}" for i in range(15))
    assert answer.session == Session()


@pytest.mark.parametrize("query", ["", "zebra"])
def test_a_list_of_names_stays_inside_the_answers_budget(query: str) -> None:
    tools = [Tool(f"a_rather_long_tool_name_{i}", "x") for i in range(500)]
    folded = stubs(tools, settings={"search_max_tokens": 200})

    answer = answered(folded.resolve("tool_search", {"query": query}))

    assert len(answer.text) <= 800
    assert answer.text.endswith(" more")


def test_a_long_answer_shows_the_best_in_full_and_the_rest_by_name() -> None:
    wide = {
        "type": "object",
        "properties": {f"parameter_{i}": {"type": "string"} for i in range(40)},
    }
    tools = [Tool(f"mail_{i}", "x", wide) for i in range(20)]

    answer = answered(
        stubs(tools, settings={"search_max_tokens": 1_000}).resolve(
            "tool_search", {"query": "mail"}
        )
    )

    assert len(answer.text) <= 4_000
    assert '- {"name":"mail_0"' in answer.text
    assert [line for line in answer.text.splitlines() if line == "- mail_7"]
    assert len(answer.session.revealed) == 8


@given(lists_of("openai-chat", min_size=2))
def test_a_stub_keeps_every_name_and_description(items: list[Any]) -> None:
    folded = stubs(items, settings={"enabled": "on"})

    sent = [tool["function"] for tool in folded.tools]
    assert [tool["name"] for tool in sent[:-1]] == [name_of(item) for item in items]
    for tool, item in zip(sent, items, strict=False):
        assert tool["description"] == item["function"]["description"]
        own = item["function"]["parameters"]
        assert tool["parameters"] == (STUB if len(compact(own)) > len(compact(STUB)) else own)
    everything = fold(
        items,
        settings=Settings(strategy="stub", enabled="on"),
        session=Session(revealed=tuple(name_of(item) for item in items)),
    )
    assert all(out is item for out, item in zip(everything.tools, items, strict=False))


def test_stubs_save_39_per_cent_of_the_list_and_55_of_the_schemas_on_19_tools() -> None:
    tools = json.loads(SURFACE.read_text("utf-8"))

    folded = stubs(tools)
    # As in the seed, the search tool is the nineteenth on both sides.
    full = [*tools, folded.tools[-1]]

    def size(value: Any) -> int:
        return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())

    def schemas(items: list[Any]) -> int:
        return sum(size(item["function"]["parameters"]) for item in items)

    whole, left = size(full), size(folded.tools)
    before, after = schemas(full), schemas(folded.tools)
    print(f"list {whole:,} -> {left:,} bytes ({1 - left / whole:.0%} off)")  # noqa: T201
    print(f"schemas {before:,} -> {after:,} bytes ({1 - after / before:.0%} off)")  # noqa: T201

    assert len(full) == 19
    assert left <= (1 - 0.39) * whole
    assert after <= (1 - 0.55) * before
