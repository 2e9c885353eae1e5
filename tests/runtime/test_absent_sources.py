"""An agent whose server is dead or starting: the model is told, as far as the scope reaches."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from support.running import wait
from toolfold import Settings, Tool
from toolfold.absent import AbsentSource
from toolfold.runtime import Agent, Registry, ScriptedModel
from toolfold.sources import CallContext, Source
from toolfold.sources.mcp.mcp_source import McpSource
from toolfold.sources.mcp.server import Server
from toolfold.tool import Json

FOLDED = Settings(enabled="on", cache_dir="off")
PLAIN = Settings(enabled="off")
DIES = Server("jira", command=sys.executable, args=("-c", "raise SystemExit(4)"))


def notes() -> Registry:
    registry = Registry()

    @registry.tool
    def create_issue(text: str) -> str:
        """Create an issue in the notes."""
        return text

    return registry


class Away(Source):
    """A source of one's own that says that it is away."""

    name = "vault"

    def tools(self) -> Sequence[Tool]:
        return ()

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        raise AssertionError("it has nothing to call")

    def absence(self) -> AbsentSource | None:
        return AbsentSource("vault", "it is locked")


def asked(agent: Agent, *questions: tuple[str, dict[str, Any]]) -> list[str]:
    async def main() -> list[str]:
        async with agent:
            return [(await agent.call(name, arguments)).text for name, arguments in questions]

    return wait(main(), 30)


def test_a_search_and_a_call_name_a_dead_server() -> None:
    agent = Agent(ScriptedModel(()), [McpSource(DIES), notes()], settings=FOLDED)

    found, called = asked(
        agent, ("tool_search", {"query": "create a jira issue"}), ("jira__create_issue", {})
    )

    assert "- create_issue" in found
    assert "jira is not running: ended with 4 before it was ready; it is" in found
    assert called.startswith('"jira__create_issue" is not available in this session. jira is not')


def test_without_folding_a_call_names_it_too() -> None:
    agent = Agent(ScriptedModel(()), [McpSource(DIES), notes()], settings=PLAIN)

    [called] = asked(agent, ("jira__create_issue", {}))

    assert "jira is not running: ended with 4" in called
    assert "Did you mean" not in called


def test_a_subagent_that_may_not_use_a_dead_server_hears_nothing_of_it() -> None:
    agent = Agent(ScriptedModel(()), [McpSource(DIES), notes()], settings=FOLDED)
    narrow = agent.subagent("narrow", deny=("@jira",))

    for text in asked(narrow, ("tool_search", {"query": "xyzzy jira"}), ("jira__create_issue", {})):
        assert "is not running" not in text


def test_a_prefixed_server_is_named_by_its_prefix_and_a_filtered_one_where_any_of_it_is_left() -> (
    None
):
    renamed = Agent(
        ScriptedModel(()), [McpSource(DIES).prefixed("tracker"), notes()], settings=FOLDED
    )
    emptied = Agent(
        ScriptedModel(()), [McpSource(DIES).filtered(deny=("*",)), notes()], settings=FOLDED
    )

    assert "tracker is not running" in asked(renamed, ("tracker__x", {}))[0]
    assert "is not running" not in asked(emptied, ("jira__x", {}))[0]


def test_any_source_may_say_that_it_is_away() -> None:
    agent = Agent(ScriptedModel(()), [Away(), notes()], settings=FOLDED)

    assert [away.name for away in agent.absent()] == ["vault"]
    [found] = asked(agent, ("tool_search", {"query": "xyzzy plugh"}))
    assert "vault is not running: it is locked. Its tools cannot be run now" in found
