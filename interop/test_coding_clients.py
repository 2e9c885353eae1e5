"""Claude Code and Codex, with the entry that `toolfold install` writes, before a scripted model.

What is asserted is what their requests held: which tools, in which order, for how many tokens;
and that a task takes one search and one call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from coding_clients import (
    CLIENTS,
    ClaudeCode,
    Codex,
    CodingClient,
    Ran,
    Session,
    entry_of,
    hold,
    is_installed,
    unmarked,
)
from gateways import Gateway, configured
from scripted_model import Asked, Call, OneTask, Part, Play, Say
from servers import World

from conftest import tokens

BRIDGE = ["tool_call", "tool_describe", "tool_search"]
QUESTION = "What is noon of Kolkata in Tokyo?"
OWN_SEARCH = {"ToolSearch": {"query": "select:mcp__toolfold__tool_search,mcp__toolfold__tool_call"}}
TASK = OneTask(
    "convert a time between time zones",
    "time__convert_time",
    {"source_timezone": "Asia/Kolkata", "time": "12:00", "target_timezone": "Asia/Tokyo"},
    own_search=OWN_SEARCH,
)
CLAUDE, UNKNOWN, CODE_MODE = "claude-sonnet-4-5", "a-model-of-mine", "gpt-6-sol"

pytestmark = pytest.mark.timeout(200)


def needs(client: CodingClient) -> CodingClient:
    """Return a client, or skip the test where its program is not installed."""
    if not is_installed(client):
        pytest.skip(f"{client.program} is not installed: run `make interop`, with npm")
    return client


@pytest.fixture(scope="module")
def gateway(world: World, tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    """Six servers behind the bridge."""
    return configured(tmp_path_factory.mktemp("gateway"), world.entries)


def held(
    client: CodingClient,
    gateway: Gateway,
    folder: Path,
    model: str,
    play: Play = TASK,
    change: Callable[[Session], None] = lambda session: None,
) -> tuple[Ran, list[Asked]]:
    """Hold a conversation about noon and return how it ended and what the model was asked."""
    ran, turns = hold(client, gateway, folder, model, QUESTION, play, change)
    assert ran.code == 0, ran.complaint
    return ran, turns


def ours(asked: Asked) -> list[str]:
    """Return which of our tools the model could see, in order, without the client's prefix."""
    return [
        name.removeprefix("mcp__toolfold__") for name in asked.names if name.endswith(tuple(BRIDGE))
    ]


def calls(asked: Asked) -> list[str]:
    """Return the names of the calls that a conversation holds."""
    return [call.name.removeprefix("mcp__toolfold__") for call in asked.calls]


def cost(asked: Asked) -> int:
    """Return the tokens of our tools in a request."""
    shown = [tool.record for tool in asked.tools if tool.name.endswith(tuple(BRIDGE))]
    return tokens(json.dumps(shown, ensure_ascii=False))


# ---- Claude Code


def test_claude_code_does_a_task_in_one_search_and_one_call(
    gateway: Gateway, tmp_path: Path
) -> None:
    ran, turns = held(needs(ClaudeCode()), gateway, tmp_path, CLAUDE)

    assert "T15:30:00+09:00" in ran.output
    assert [ours(asked) for asked in turns] == [BRIDGE] * 3
    assert calls(turns[-1]) == ["tool_search", "tool_call"]
    assert len({json.dumps(asked.content["tools"]) for asked in turns}) == 1
    assert 150 < cost(turns[0]) < 350


def test_without_the_marks_claude_code_keeps_the_bridge_behind_its_own_search(
    gateway: Gateway, tmp_path: Path
) -> None:
    ran, turns = held(needs(ClaudeCode()), gateway, tmp_path, CLAUDE, change=unmarked)

    assert "T15:30:00+09:00" in ran.output
    assert ours(turns[0]) == []
    assert "mcp__toolfold__tool_search" in json.dumps(turns[0].content["messages"])
    assert calls(turns[-1]) == ["ToolSearch", "tool_search", "tool_call"]
    assert len(turns) == 4


@pytest.mark.parametrize("mark", ["of the entry", "of the tools"])
def test_each_of_the_two_marks_is_enough(mark: str, gateway: Gateway, tmp_path: Path) -> None:
    def change(session: Session) -> None:
        if mark == "of the entry":
            unmarked(session)
        path, content, entry = entry_of(session)
        if mark == "of the entry":
            entry["alwaysLoad"] = True
        else:
            del entry["alwaysLoad"]
        path.write_text(json.dumps(content))

    _, turns = held(needs(ClaudeCode()), gateway, tmp_path, CLAUDE, change=change)

    assert ours(turns[0]) == BRIDGE
    assert len(turns) == 3


def test_claude_code_without_a_search_of_its_own_would_send_every_tool(
    plain: Gateway, gateway: Gateway, tmp_path: Path
) -> None:
    client = needs(ClaudeCode(more={"ENABLE_TOOL_SEARCH": "false"}))

    def say(asked: Asked) -> Sequence[Part]:
        return [Say("Nothing to do.")]

    _, [whole] = held(client, plain, tmp_path / "whole", CLAUDE, say)
    _, [folded] = held(client, gateway, tmp_path / "folded", CLAUDE, say)

    of_ours = [tool for tool in whole.tools if tool.name.startswith("mcp__toolfold__")]
    assert len(of_ours) == 55
    before, after = (tokens(json.dumps(asked.content["tools"])) for asked in (whole, folded))
    assert before - after > 6000


# ---- Codex


def test_codex_does_a_task_in_one_search_and_one_call(gateway: Gateway, tmp_path: Path) -> None:
    ran, turns = held(needs(Codex()), gateway, tmp_path, UNKNOWN)

    assert "T15:30:00+09:00" in ran.output
    assert [ours(asked) for asked in turns] == [BRIDGE] * 3
    assert {tool.namespace for tool in turns[0].tools if tool.name in BRIDGE} == {"mcp__toolfold"}
    assert calls(turns[-1]) == ["tool_search", "tool_call"]
    assert len({json.dumps(asked.content["tools"]) for asked in turns}) == 1
    assert 150 < cost(turns[0]) < 400


@pytest.mark.parametrize("is_approved", [False, True])
def test_codex_exec_runs_what_the_entry_approves_and_nothing_else(
    is_approved: bool, gateway: Gateway, tmp_path: Path
) -> None:
    def approve(session: Session) -> None:
        path = session.home / ".codex" / "config.toml"
        table = "[mcp_servers.toolfold]\n"
        approved = f'{table}default_tools_approval_mode = "approve"\n'
        path.write_text(path.read_text().replace(table, approved if is_approved else table))

    client = needs(Codex(is_free=False))
    ran, turns = held(client, gateway, tmp_path, UNKNOWN, change=approve)

    assert calls(turns[-1]) == ["tool_search", "tool_call"]
    assert ("T15:30:00+09:00" in ran.output) is is_approved


def code(*scripts: str) -> Play:
    """Return a play of a model in code mode: scripts, one after the other, then an end."""
    left = iter(scripts)

    def play(asked: Asked) -> Sequence[Part]:
        tool = asked.tool("exec")
        script = next(left, None)
        if tool is None or script is None:
            return [Say("Done.")]
        return [Call.of(tool, script)]

    return play


def test_in_codex_code_mode_the_bridge_is_found_among_all_tools_and_does_a_task(
    gateway: Gateway, tmp_path: Path
) -> None:
    converting = json.dumps(dict(TASK.arguments))
    play = code(
        "text(ALL_TOOLS.filter(t => /timezone|time/i.test(t.description)"
        " && t.name.startsWith('mcp')))",
        f"const found = await tools.mcp__toolfold__tool_search({{query: {TASK.query!r}}});"
        "text(found.content[0].text);"
        f"const done = await tools.mcp__toolfold__tool_call({{name: {TASK.tool!r},"
        f" arguments: {converting}}}); text(done.structuredContent)",
    )

    _, turns = held(needs(Codex()), gateway, tmp_path, CODE_MODE, play)

    assert "tools" not in turns[0].content
    assert ours(turns[0]) == []
    assert not any("toolfold" in tool.description for tool in turns[0].tools)
    listed, done = (result.text for result in turns[-1].results)
    assert "mcp__toolfold__tool_search(args:" in listed
    # What finds the tools and how one is run stands in the one that a filter finds.
    assert "run with tool_call at once" in listed
    assert "time (2)" in listed
    assert "time__convert_time(source_timezone: string" in done
    assert "T15:30:00+09:00" in done


# ---- all of them


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.program)
def test_a_task_takes_one_search_and_one_call_in_every_client(
    client: CodingClient, gateway: Gateway, tmp_path: Path
) -> None:
    model = CLAUDE if client.program == "claude" else UNKNOWN
    # Qwen Code has a `tool_search` of its own, so ours has another name there.
    prefix = "folded" if client.program == "qwen" else "tool"
    task = replace(TASK, search=f"{prefix}_search", call=f"{prefix}_call")

    _, turns = held(needs(client), gateway, tmp_path, model, task)

    assert any("T15:30:00+09:00" in result.text for result in turns[-1].results)
    of_ours = [call.name for call in turns[-1].calls if prefix in call.name]
    assert [name[-len(task.call) :] for name in of_ours if name.endswith("call")] == [task.call]
    assert [name for name in of_ours if not name.endswith((task.search, task.call))] == []
    assert len(of_ours) == 2
