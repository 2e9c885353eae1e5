"""`tool_describe`: the full schema of one tool or of several."""

from __future__ import annotations

import json

import pytest

from support.outcomes import answered, invoked
from toolfold import Folded, Settings, Tool, estimate, fold

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
MAIL = Tool("send_mail", "Send a letter by mail. At once.", SCHEMA, source="mail")
ISSUE = Tool("github.create_issue", "Open an issue.", source="github")
FILE = Tool("read_file", "Read a file.", {"type": "object", "properties": {"path": {}}})

MAIL_TEXT = (
    '{"name":"send_mail","description":"Send a letter by mail. At once.","parameters":'
    '{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}'
)
ISSUE_TEXT = (
    '{"name":"github.create_issue","description":"Open an issue.","parameters":'
    '{"type":"object","properties":{}}}'
)
FILE_TEXT = (
    '{"name":"read_file","description":"Read a file.","parameters":'
    '{"type":"object","properties":{"path":{}}}}\n'
    "read_file is one of your listed tools: call it directly."
)


def bridge(*tools: Tool, **settings: object) -> Folded:
    chosen = Settings(**{"enabled": "on", "ranker": "bm25", **settings})  # type: ignore[arg-type]
    return fold(tools or (MAIL, ISSUE, FILE), core=["read_file"], settings=chosen)


@pytest.mark.parametrize(
    "name", ["send_mail", "`send_mail`", '"send_mail"', " send_mail ", "mail.send_mail"]
)
def test_one_name_gives_the_full_schema(name: str) -> None:
    answer = answered(bridge().resolve("tool_describe", {"name": name}))

    assert answer.text == MAIL_TEXT
    assert (answer.is_error, answer.tools) == (False, (MAIL,))
    assert answer.session.revealed == ("send_mail",)


@pytest.mark.parametrize(
    "names",
    [
        "send_mail, create_issue",
        "send_mail|github.create_issue",
        "send_mail\ncreate_issue",
        ["send_mail", "create_issue", "send_mail", 3],
        "`send_mail`, `create_issue`",
    ],
)
def test_several_names_give_several_schemas(names: object) -> None:
    answer = answered(bridge().resolve("tool_describe", {"name": names}))

    assert answer.text == f"{MAIL_TEXT}\n{ISSUE_TEXT}"
    assert answer.tools == (MAIL, ISSUE)
    assert bridge().resolve("tool_describe", {"names": names}) == answer


def test_a_core_tools_schema_comes_with_call_it_directly() -> None:
    answer = answered(bridge().resolve("tool_describe", {"name": "read_file"}))

    assert (answer.text, answer.is_error) == (FILE_TEXT, False)


def test_an_unknown_name_gets_near_names() -> None:
    answer = answered(bridge().resolve("tool_describe", {"name": "'send_mial'"}))

    assert answer.is_error
    assert answer.text == '"send_mial" is not available in this session. Did you mean send_mail?'


def test_an_unknown_name_like_no_other_is_sent_to_search() -> None:
    answer = answered(bridge().resolve("tool_describe", {"name": "qqq"}))

    assert answer.is_error
    assert answer.text == ('"qqq" is not available in this session. Find tools with tool_search.')


def test_what_is_known_is_described_though_another_name_is_not() -> None:
    answer = answered(bridge().resolve("tool_describe", {"name": "send_mial, create_issue"}))

    assert not answer.is_error
    assert answer.text == (
        '"send_mial" is not available in this session. Did you mean send_mail?\n' + ISSUE_TEXT
    )


@pytest.mark.parametrize(
    "arguments", [{}, {"name": ""}, {"name": " , "}, {"name": 3}, {"name": []}, None]
)
def test_no_name_is_the_models_mistake(arguments: object) -> None:
    answer = answered(bridge().resolve("tool_describe", arguments))

    assert answer.is_error
    assert answer.text == 'Which tool? Give its name, as {"name": "…"}.'


def test_names_beyond_sixteen_are_counted() -> None:
    tools = [Tool(f"t{i:02}") for i in range(20)]

    answer = answered(
        bridge(*tools).resolve("tool_describe", {"name": [tool.name for tool in tools]})
    )

    assert answer.tools == tuple(tools[:16])
    assert answer.text.endswith("\n(4 more tools left out. Describe fewer at once.)")


def test_a_definition_over_the_budget_loses_its_texts_first() -> None:
    wordy = Tool(
        "wordy",
        "Does it. " * 400,
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "description": "long " * 500, "examples": ["e" * 99]},
                "description": {"type": "string", "enum": ["x", "y"]},
            },
            "required": ["a"],
        },
    )

    answer = answered(
        bridge(wordy, describe_max_tokens=300).resolve("tool_describe", {"name": "wordy"})
    )

    text, note = answer.text.rsplit(" (", 1)
    assert note == "Texts were shortened to fit.)"
    shown = json.loads(text)
    assert estimate(answer.text) <= 300
    assert shown["parameters"]["properties"]["a"]["type"] == "string"
    assert shown["parameters"]["properties"]["description"] == {
        "type": "string",
        "enum": ["x", "y"],
    }
    assert shown["parameters"]["required"] == ["a"]


def test_a_definition_that_cannot_be_shortened_enough_gives_its_signature() -> None:
    huge = Tool(
        "huge",
        "Huge.",
        {
            "type": "object",
            "properties": {f"p{i}": {"type": "string", "maxLength": i} for i in range(200)},
        },
    )

    answer = answered(
        bridge(huge, describe_max_tokens=200).resolve("tool_describe", {"name": "huge"})
    )

    assert answer.text.startswith(
        "(The schema is too long to show.) Signature: huge(p0?: string, p1?: string, "
    )
    assert estimate(answer.text) <= 250


def test_several_definitions_share_the_budget() -> None:
    tools = [Tool(f"t{i}", f"word {i} " * 200) for i in range(8)]

    answer = answered(
        bridge(*tools, describe_max_tokens=500).resolve(
            "tool_describe", {"name": [tool.name for tool in tools]}
        )
    )

    assert estimate(answer.text) <= 500
    assert [json.loads(line.rsplit(" (", 1)[0])["name"] for line in answer.text.splitlines()] == [
        tool.name for tool in tools
    ]


def test_too_many_definitions_for_the_budget_are_counted() -> None:
    tools = [
        Tool(
            f"t{i}", "", {"type": "object", "properties": {f"parameter_{j}": {} for j in range(30)}}
        )
        for i in range(8)
    ]

    answer = answered(
        bridge(*tools, describe_max_tokens=400).resolve(
            "tool_describe", {"name": [tool.name for tool in tools]}
        )
    )

    assert estimate(answer.text) <= 400
    assert answer.text.endswith(" more tools left out. Describe fewer at once.)")


def test_a_schema_is_shown_with_visible_characters_only() -> None:
    evil = Tool(
        "evil",
        "Says\u202e so\x00.",
        {"type": "object", "properties": {"a\u200b": {"description": "b\u2066c"}}},
    )

    answer = answered(bridge(evil).resolve("tool_describe", {"name": "evil"}))

    assert answer.text == (
        '{"name":"evil","description":"Says so.","parameters":'
        '{"type":"object","properties":{"a":{"description":"bc"}}}}'
    )


def test_a_tool_whose_name_is_one_of_the_bridges_in_quotes_is_still_reached() -> None:
    odd = Tool("`tool_search", "Odd.", SCHEMA)

    assert answered(bridge(odd).resolve("tool_describe", {"name": odd.name})).tools == (odd,)
    made = bridge(odd).resolve("tool_call", {"name": odd.name, "arguments": {"to": "you"}})
    assert invoked(made).tool == odd
