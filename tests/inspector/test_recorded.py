"""What was recorded, in the inspector: saved traffic, audit logs, and what a path on the command
line is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolfold import CatalogError, ConfigError
from toolfold.inspector.conversations import Conversations
from toolfold.inspector.named_paths import NamedPaths, sorted_paths, tools_of_traffic

SCRIPT = "<img src=x onerror=alert(1)>"


def saved(folder: Path, number: int, messages: list[dict[str, Any]], **counted: Any) -> Path:
    """Write one request as `toolfold proxy --save` does; return its file."""
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
    value = {
        "toolfold_proxy": 1,
        "at": "2026-11-16T10:00:00.000Z",
        "dialect": "openai-chat",
        "model": "gpt-6",
        "counted": counted,
        "request": {"model": "gpt-6", "messages": messages, "tools": [tool]},
        "answer": {"choices": [{"message": {"role": "assistant", "content": "Sunny."}}]},
    }
    file = folder / f"request-{number}.json"
    file.write_text(json.dumps(value, indent=1))
    return file


def call_line(**changes: Any) -> str:
    fields = {
        "at": "2026-11-16T10:00:00.000Z",
        "principal": "ada",
        "session": "abc",
        "server": "forge",
        "tool": "forge__create_issue",
        "via": "tool_call",
        "outcome": "ok",
        "seconds": 0.2,
        "request_size": 10,
        "result_size": 20,
        "arguments": '{"title":"A"}',
        "error": None,
    }
    return json.dumps({**fields, **changes})


def test_requests_that_begin_alike_are_one_conversation_with_time_and_tokens_a_turn(
    tmp_path: Path,
) -> None:
    hi = {"role": "user", "content": "Is it sunny?"}
    again = [hi, {"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Sure?"}]
    count = {"tokens_before": 900, "tokens_after": 100, "prompt_tokens": 50, "searches": 1}
    first = saved(tmp_path, 1, [hi], seconds=1.0, rounds=2, **count)
    second = saved(tmp_path, 2, again, seconds=0.5, rounds=1, **count)
    other = saved(tmp_path, 3, [{"role": "user", "content": "Something else"}])

    conversations = Conversations([first, second, other])
    listed = conversations.view()["conversations"]
    value = conversations.conversation(listed[0]["id"])

    assert [(each["title"], each["requests"], each["turns"]) for each in listed] == [
        ("Is it sunny?", 2, 2),
        ("Something else", 1, 1),
    ]
    assert value is not None
    turns = value["turns"]
    assert [(turn["seconds"], turn["round_trips"], turn["saved"]) for turn in turns] == [
        (1.0, 2, 1_600),
        (0.5, 1, 800),
    ]


def test_the_tools_that_clients_sent_are_a_catalog(tmp_path: Path) -> None:
    file = saved(tmp_path, 1, [{"role": "user", "content": "Hi"}])
    bad = tmp_path / "bad.json"
    bad.write_text("{")

    found = tools_of_traffic([bad, file])

    assert found is not None
    assert found.names == ("get_weather",)
    assert tools_of_traffic([bad]) is None


def test_an_audit_log_is_read_by_call_and_half_a_line_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    failed = call_line(outcome="failed", error=SCRIPT, tool="forge__list_issues")
    file.write_text(f'{call_line()}\n{failed}\n{{"at": "20')

    conversations = Conversations([file])
    (listed,) = conversations.view()["conversations"]
    value = conversations.conversation(0)

    assert (listed["kind"], listed["turns"]) == ("audit", 3)
    assert value is not None
    assert [call["tool"] for call in value["calls"]] == [
        "forge__create_issue",
        "forge__list_issues",
    ]
    assert value["calls"][1]["error"] == SCRIPT
    assert (value["outcomes"], value["unreadable"]) == ({"ok": 1, "failed": 1}, 1)


def test_what_somebody_changed_in_a_gateway_is_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    change = {
        "at": "2026-11-16T10:00:00Z", "principal": "local", "verb": "servers.restart",
        "target": "forge", "outcome": "ok", "detail": "it was asked for",
    }  # fmt: skip
    file.write_text(f"{call_line()}\n{json.dumps(change)}\n")

    value = Conversations([file]).conversation(0)

    assert value is not None
    assert value["calls"][1] == change


def test_the_proxys_audit_says_what_folding_saved(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    request = {"at": "2026-11-16T10:00:00Z", "principal": "ada", "upstream": "openai"}
    counted = {"outcome": "folded", "seconds": 1.5, "tokens_before": 900, "tokens_after": 90}
    file.write_text(json.dumps({**request, **counted, "model": "gpt-6", "searches": 1}))

    value = Conversations([file]).conversation(0)

    assert value is not None
    (call,) = value["calls"]
    assert (call["model"], call["tokens_before"], call["tokens_after"]) == ("gpt-6", 900, 90)


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text('{"role": "user", "text": "One"}\n')
    conversations = Conversations([file])
    before = conversations.view()["conversations"][0]

    file.write_text('{"role": "user", "text": "One"}\n{"role": "user", "text": "Two"}\n')
    after = conversations.view()["conversations"][0]

    assert (before["turns"], after["turns"]) == (1, 2)


def test_what_a_path_holds_says_what_it_is(tmp_path: Path) -> None:
    contents = {
        "tools.json": '[{"name": "a", "parameters": {}}]',
        "tools.jsonl": '{"name": "a", "parameters": {}}\n',
        "mcp.json": '{"mcpServers": {}}',
        "chat.jsonl": '{"role": "user", "text": "Hi"}\n',
        "audit.log": call_line() + "\n",
        "run.json": '{"toolfold_ab": 1}',
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "traffic").mkdir()
    path = {name: str(tmp_path / name) for name in (*contents, "traffic")}

    assert sorted_paths(list(path.values())) == NamedPaths(
        (path["tools.json"], path["tools.jsonl"]),
        path["mcp.json"],
        (path["chat.jsonl"], path["audit.log"], path["run.json"], path["traffic"]),
    )


def test_a_path_that_is_not_there_and_two_configurations_are_errors(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("serve: {}")

    with pytest.raises(CatalogError, match="there is no"):
        sorted_paths([str(tmp_path / "elsewhere")])
    with pytest.raises(ConfigError, match="are both configurations"):
        sorted_paths([str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")])


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"toolfold_proxy": ' + "[" * 100_000,
        '{"toolfold_proxy": 1, "request": {"messages": 7}}',
        '{"toolfold_proxy": 1, "request": {"messages": [{"role": "user", "content": 7}]}}',
        '{"toolfold_ab": 1, "turns": 7}',
        '{"toolfold_ab": []}',
        '{"role": "user", "text": 7}',
        '{"at": 1, "principal": [], "outcome": {}}',
        "\x00\x01",
        "",
    ],
)
def test_whatever_a_file_holds_is_listed_or_refused_with_a_reason(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "odd.json"
    file.write_text(text)

    assert sorted_paths([str(file)])
    conversations = Conversations([file])
    (listed,) = conversations.view()["conversations"]
    assert isinstance(listed["error"], str)
    try:
        assert conversations.conversation(0) is not None
    except CatalogError as error:
        assert error.hint
    assert tools_of_traffic([file]) is None
