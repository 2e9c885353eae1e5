"""`tool_call` and direct calls: the real tool with arguments that fit, or the next step."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.outcomes import answered, invoked
from toolfold import Answer, Folded, Invocation, Settings, Tool, fold

ISSUE = Tool(
    "github.create_issue",
    "Open an issue.",
    {
        "type": "object",
        "properties": {
            "title": {"type": "string", "minLength": 1},
            "count": {"type": "integer", "minimum": 1},
            "labels": {"type": "array", "items": {"type": "string"}},
            "sizes": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
            "when": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "state": {"enum": ["open", "closed"]},
            "draft": {"type": "boolean"},
            "ratio": {"type": "number"},
            "options": {
                "type": "object",
                "properties": {"depth": {"type": "integer"}},
                "required": ["depth"],
            },
        },
        "required": ["title"],
        "additionalProperties": False,
    },
    source="github",
)
SIGNATURE = (
    "github.create_issue(title: string, count?: integer >=1, labels?: string[], sizes?: integer[], "
    'when?: integer, state?: "open"|"closed", draft?: boolean, ratio?: number, '
    "options?: {depth: integer})"
)
MAIL = Tool("send_mail", "Send a letter.", source="mail")
FILE = Tool("read_file", "Read a file.", {"type": "object", "required": ["path"]})


def bridge(*tools: Tool) -> Folded:
    return fold(tools or (ISSUE, MAIL, FILE), core=["read_file"], settings=Settings(enabled="on"))


def call(name: object, arguments: Any, folded: Folded | None = None) -> Any:
    return (folded or bridge()).resolve("tool_call", {"name": name, "arguments": arguments})


@pytest.mark.parametrize(
    "name",
    ["github.create_issue", "`github.create_issue`", "github/create_issue", "github__Create-Issue"],
)
def test_a_call_comes_to_the_real_tool_and_its_arguments(name: str) -> None:
    folded = bridge()

    invocation = call(name, {"title": "a"}, folded)

    assert isinstance(invocation, Invocation)
    assert invocation.tool is folded.catalog["github.create_issue"]
    assert (invocation.arguments, invocation.via) == ({"title": "a"}, "tool_call")


@pytest.mark.parametrize(
    "arguments",
    [{"title": "a\nb"}, '{"title": "a\\nb"}', '{"title": "a\nb"}', b'{"title": "a\\nb"}'],
)
def test_arguments_may_be_an_object_or_json_text_with_raw_control_characters(
    arguments: object,
) -> None:
    assert call("github.create_issue", arguments).arguments == {"title": "a\nb"}


@pytest.mark.parametrize("arguments", [None, "", "  ", {}, "{}", "null"])
def test_blank_arguments_are_none(arguments: object) -> None:
    invocation = call("send_mail", arguments)

    assert (invocation.tool.name, invocation.arguments) == ("send_mail", {})
    assert invoked(bridge().resolve("tool_call", {"name": "send_mail"})).arguments == {}


@pytest.mark.parametrize("beside", [{}, {"arguments": None}, {"arguments": ""}, {"arguments": {}}])
def test_arguments_written_beside_the_name_are_understood(beside: dict[str, Any]) -> None:
    flat = {"name": "github.create_issue", "title": "a", "count": "3", **beside}

    assert invoked(bridge().resolve("tool_call", flat)).arguments == {"title": "a", "count": 3}
    assert invoked(bridge().resolve("tool_call", json.dumps(flat))).arguments == {
        "title": "a",
        "count": 3,
    }


@pytest.mark.parametrize(
    ("given_", "repaired"),
    [
        ({"count": "3"}, {"count": 3}),
        ({"count": " 3 "}, {"count": 3}),
        ({"count": 3.0}, {"count": 3.0}),
        ({"ratio": "0.5"}, {"ratio": 0.5}),
        ({"labels": "bug"}, {"labels": ["bug"]}),
        ({"labels": '["a", "b"]'}, {"labels": ["a", "b"]}),
        ({"labels": [1, "b"]}, {"labels": ["1", "b"]}),
        ({"sizes": "4"}, {"sizes": [4]}),
        ({"sizes": ["4", 5]}, {"sizes": [4, 5]}),
        ({"sizes": None}, {"sizes": None}),
        ({"when": "5"}, {"when": 5}),
        ({"when": None}, {"when": None}),
        ({"draft": "true"}, {"draft": True}),
        ({"draft": "False"}, {"draft": False}),
        ({"options": '{"depth": "2"}'}, {"options": {"depth": 2}}),
        ({"options": {"depth": "2"}}, {"options": {"depth": 2}}),
        ({"title": 5}, {"title": "5"}),
        ({"count": None, "labels": None}, {}),
    ],
)
def test_harmless_repairs_are_made(given_: dict[str, Any], repaired: dict[str, Any]) -> None:
    invocation = call("github.create_issue", {"title": "a", **given_})

    assert isinstance(invocation, Invocation)
    assert invocation.arguments == {"title": "a", **repaired}


def test_what_fits_is_left_as_it_came() -> None:
    arguments = {"title": "5", "labels": ["1"], "ratio": 1, "options": {"depth": 1, "more": "2"}}

    assert call("github.create_issue", arguments).arguments == arguments


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "missing argument 'title'"),
        ({"title": "a", "count": 0}, "count: breaks `minimum` 1"),
        ({"title": ""}, "title: breaks `minLength` 1"),
        ({"title": "a", "count": "x"}, "count: is a string, not integer"),
        ({"title": "a", "count": 1.5}, "count: is a number, not integer"),
        ({"title": "a", "when": "x"}, "when: is a string, not integer or null"),
        ({"title": "a", "state": "ajar"}, 'state: is not one of "open", "closed"'),
        ({"title": "a", "options": {}}, "options: missing argument 'depth'"),
        ({"title": "a", "options": {"depth": "x"}}, "options.depth: is a string, not integer"),
        ({"title": "a", "labels": [["x"]]}, "labels[0]: is a list, not string"),
        ({"title": "a", "tilte": "b"}, "unknown argument 'tilte'"),
        ({"title": None}, "title: is null, not string"),
    ],
)
def test_the_rest_comes_back_with_the_path_the_constraint_and_the_signature(
    arguments: dict[str, Any], fault: str
) -> None:
    answer = call("github.create_issue", arguments)

    assert isinstance(answer, Answer)
    assert answer.is_error
    assert answer.text == f"github.create_issue was not run. {fault}. Signature: {SIGNATURE}"


def test_several_faults_come_back_at_once_and_at_most_five() -> None:
    tool = Tool("many", "", {"type": "object", "required": [f"p{i}" for i in range(9)]})

    answer = call("many", {}, bridge(tool))

    assert answer.text == (
        "many was not run. missing argument 'p0'; missing argument 'p1'; missing argument 'p2'; "
        "missing argument 'p3'; missing argument 'p4'. Signature: many()"
    )


def test_a_fault_does_not_repeat_the_value() -> None:
    answer = call("github.create_issue", {"title": "a", "count": "secret" * 1000})

    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            "{oops",
            "arguments are not valid JSON: Expecting property name enclosed in double quotes "
            "at character 1",
        ),
        ("title=a", "arguments are not valid JSON: Expecting value at character 0"),
        ([1], "arguments are a list, not an object"),
        ('"a"', "arguments are a string, not an object"),
        (7, "arguments are a number, not an object"),
        (True, "arguments are a boolean, not an object"),
    ],
)
def test_arguments_that_are_no_object_come_back_with_the_signature(
    arguments: object, reason: str
) -> None:
    answer = call("github.create_issue", arguments)

    assert answer.is_error
    assert answer.text == (
        f"github.create_issue was not run: {reason}. Send one JSON object. Signature: {SIGNATURE}"
    )


def test_a_recursive_reference_is_checked() -> None:
    tree = Tool(
        "plant",
        "",
        {
            "type": "object",
            "properties": {"root": {"$ref": "#/$defs/node"}},
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "size": {"type": "integer"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    },
                }
            },
        },
    )
    folded = bridge(tree)

    good = call("plant", {"root": {"children": [{"size": "1"}]}}, folded)
    bad = call("plant", {"root": {"children": [{"size": "one"}]}}, folded)

    assert good.arguments == {"root": {"children": [{"size": 1}]}}
    assert "root.children[0].size: is a string, not integer" in bad.text


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 12},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"type": "object", "properties": {"a": {"pattern": "(?<=x)y("}}},
        {"$schema": "https://example.org/unknown", "type": "object"},
        {"properties": []},
    ],
)
def test_a_schema_that_cannot_be_used_does_not_block_the_call(schema: dict[str, Any]) -> None:
    invocation = call("odd", {"a": 1}, bridge(Tool("odd", "", schema)))

    assert isinstance(invocation, Invocation)
    assert invocation.arguments == {"a": 1}


@pytest.mark.parametrize(
    "reference",
    ["https://192.0.2.1/schema.json", "file:///etc/hostname", "other.json#/x"],
)
def test_a_reference_that_is_not_local_is_never_fetched(reference: str) -> None:
    tool = Tool("far", "", {"type": "object", "properties": {"a": {"$ref": reference}}})

    started = time.process_time()
    invocation = call("far", {"a": 1}, bridge(tool))

    assert isinstance(invocation, Invocation)
    # The address is one that never answers: a fetch would hang.
    assert time.process_time() - started < 2


def test_a_catastrophic_pattern_answers_at_once() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    folded = bridge(Tool("slow", "", schema))

    started = time.process_time()
    answer = call("slow", {"a": "a" * 5_000 + "!"}, folded)

    assert time.process_time() - started < 2
    assert answer.text == (
        'slow was not run. a: breaks `pattern` "^(a+)+$". Signature: slow(a?: string)'
    )


def test_no_bridge_tool_is_called_through_the_bridge() -> None:
    assert [call(name, {"query": "x"}).text for name in ("tool_search", "tool_describe")] == [
        "tool_call cannot run tool_search: call tool_search directly.",
        "tool_call cannot run tool_describe: call tool_describe directly.",
    ]
    itself = call("`tool_call`", {"name": "send_mail"})
    assert itself.is_error
    assert itself.text == (
        "tool_call cannot run itself. Give it the name of the tool that you want to run."
    )


def test_a_core_tool_is_refused_with_call_it_directly() -> None:
    answer = call("read_file", {"path": "a"})

    assert answer.is_error
    assert answer.text == "read_file is one of your listed tools: call it directly."


def test_a_core_tool_called_directly_is_the_hosts_business() -> None:
    invocation = invoked(bridge().resolve("read_file", '{"odd": 1}'))

    assert (invocation.tool.name, invocation.arguments, invocation.via) == (
        "read_file",
        {"odd": 1},
        "direct",
    )


def test_a_folded_tool_called_directly_is_honoured_and_checked() -> None:
    folded = bridge()

    good = invoked(folded.resolve("github.create_issue", {"title": "a", "count": "2"}))
    bad = answered(folded.resolve("github.create_issue", {}))

    assert (good.arguments, good.via) == ({"title": "a", "count": 2}, "direct")
    assert bad.text == (
        f"github.create_issue was not run. missing argument 'title'. Signature: {SIGNATURE}"
    )


def test_a_folded_tool_is_honoured_under_its_name_on_the_wire_too() -> None:
    assert invoked(bridge().resolve(ISSUE.wire_name, {"title": "a"})).tool == ISSUE


@pytest.mark.parametrize("how", ["tool_call", "direct"])
def test_an_unknown_name_gets_near_names_of_the_scope_with_their_signatures(how: str) -> None:
    name = "create_isue"

    outcome = call(name, {}) if how == "tool_call" else bridge().resolve(name, {})

    answer = answered(outcome)
    assert answer.is_error
    named, shown = answer.text.split("\n")
    assert named == (
        '"create_isue" is not available in this session. Did you mean github.create_issue?'
    )
    assert shown.startswith("- github.create_issue(title: string, count?: integer >=1, ")


def test_without_a_fold_an_unknown_name_is_not_sent_to_a_search_that_is_not_there() -> None:
    answer = answered(fold([MAIL]).resolve("tool_search", {"query": "x"}))

    assert answer.is_error
    assert answer.text == '"tool_search" is not available in this session.'


@pytest.mark.parametrize("arguments", [{}, {"name": ""}, {"name": " "}, {"name": 3}, None])
def test_a_call_without_a_name_shows_the_form(arguments: object) -> None:
    answer = answered(bridge().resolve("tool_call", arguments))

    assert answer.is_error
    assert answer.text == 'Which tool? Give its name, as {"name": "…", "arguments": {…}}.'


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.sampled_from(["tool_search", "tool_describe", "tool_call", "github.create_issue", "x"])
    | st.text(st.characters(), max_size=20),
    JUNK
    | st.fixed_dictionaries(
        {}, optional={"query": JUNK, "limit": JUNK, "name": JUNK, "arguments": JUNK}
    )
    | st.fixed_dictionaries({"name": st.just("github.create_issue"), "arguments": JUNK}),
)
def test_resolve_never_raises_for_what_a_model_sends(name: str, arguments: Any) -> None:
    result = bridge().resolve(name, arguments)

    assert isinstance(result, Answer | Invocation)
    assert isinstance(result, Invocation) or result.text


def test_a_folded_list_may_be_shared_by_threads() -> None:
    tools = [Tool(f"tool_{i}", f"Work on thing {i}.", ISSUE.parameters) for i in range(50)]
    folded = fold(tools, settings=Settings(enabled="on"))
    alone = fold(
        [Tool(t.name, t.description, t.parameters) for t in tools], settings=Settings(enabled="on")
    )

    def work(i: int) -> list[Any]:
        name = f"tool_{i % 50}"
        return [
            folded.resolve("tool_search", {"query": f"thing {i % 50} | {name}"}),
            folded.resolve("tool_describe", {"name": name}),
            folded.resolve("tool_call", {"name": name, "arguments": {"title": "a", "count": "1"}}),
            folded.resolve("tool_call", {"name": name[:-1] + "?", "arguments": {}}),
        ]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(work, range(200)))

    folded = alone
    assert together == [work(i) for i in range(200)]
