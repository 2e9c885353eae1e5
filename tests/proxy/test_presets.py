"""What stays open, by who asks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.proxying import named
from toolfold import Settings
from toolfold.proxy.exchange import Untouched
from toolfold.proxy.opening import open_exchange
from toolfold.proxy.presets import CLIENTS, known_client
from toolfold.settings import PRESETS
from toolfold.store.entries import MemoryEntries

OURS = ["tool_search", "tool_describe", "tool_call"]


def sent(
    names: list[str], headers: dict[str, str] | None = None, core: tuple[str, ...] = ()
) -> Any:
    tools = [named("anthropic-messages", name) for name in names]
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    came = open_exchange(
        "anthropic-messages",
        json.dumps(body).encode(),
        headers or {},
        settings=Settings(enabled="on", core=core),
        store=MemoryEntries(),
    )
    if isinstance(came, Untouched):
        return None
    return [tool["name"] for tool in json.loads(came.body)["tools"]]


def test_tools_without_an_mcp_prefix_stay_open_where_some_have_one() -> None:
    assert sent(["read", "mcp__a__x", "write", "mcp__a__y"]) == ["read", "write", *OURS]


def test_where_none_has_a_prefix_all_are_folded() -> None:
    assert sent(["read", "write"]) == OURS


def test_core_adds_to_it() -> None:
    assert sent(["read", "mcp__a__x", "mcp__a__y"], core=("mcp__a__x",)) == [
        "read", "mcp__a__x", *OURS,
    ]  # fmt: skip


def test_a_known_client_keeps_its_own_without_any_prefix() -> None:
    headers = {"user-agent": "opencode/1.2 ai-sdk"}
    assert sent(["bash", "edit", "github_create_issue"], headers) == ["bash", "edit", *OURS]


def test_where_only_a_clients_own_tools_are_there_the_bytes_pass() -> None:
    assert sent(["Bash", "Read"], {"x-claude-code-session-id": "1"}) is None


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_known_client_has_a_preset(client: Any) -> None:
    assert PRESETS[client.name]
    assert known_client({"user-agent": f"{client.agents[0]}9.9 (linux)"}) == client


def test_a_name_with_a_pattern_in_it_matches_itself_alone() -> None:
    assert sent(["r*", "mcp__a__rx", "mcp__a__y"]) == ["r*", *OURS]
