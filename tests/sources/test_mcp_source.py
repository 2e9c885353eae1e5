"""One MCP server as a source of an agent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.gateways import odd, run
from toolfold import Settings
from toolfold.runtime import Agent
from toolfold.runtime.scripted import ScriptedModel
from toolfold.sources.mcp.mcp_source import McpSource

OPEN = Settings(enabled="off")


def test_what_the_settings_say_of_a_tool_decides_whether_it_may_be_repeated(tmp_path: Path) -> None:
    hints = {"one__die_once": {"idempotentHint": False}}

    async def main() -> None:
        source = McpSource(odd("one", "old"))
        settings = Settings(enabled="off", annotations=hints)
        async with Agent(ScriptedModel([]), source, settings=settings) as agent:
            result = await agent.call("one__die_once", {"x": str(tmp_path / "died")})

        assert result.is_error
        assert "died over it" in result.text

    run(main)


def test_an_agent_can_be_opened_again_after_it_was_closed() -> None:
    async def main() -> None:
        server = McpSource(odd("one", "plain"))
        agent = Agent(ScriptedModel([]), server, settings=OPEN)
        for _ in range(2):
            async with agent:
                assert server.state == "ready"
                result = await agent.call("one__echo", {"x": "hello"})
                assert (result.text, result.is_error) == ("one:hello", False)

    run(main)


def test_a_server_that_two_agents_opened_lives_until_the_second_has_closed_it() -> None:
    async def main() -> None:
        server = McpSource(odd("one", "plain"))
        agent = Agent(ScriptedModel([]), server, settings=OPEN)
        other = Agent(ScriptedModel([]), [server], settings=OPEN)
        async with agent, agent.subagent("helper"):
            before = await agent.call("one__pid")
            async with other:
                assert await other.call("one__pid") == before
            assert await agent.call("one__pid") == before
        assert server.state == "stopped"
        assert len(asyncio.all_tasks()) == 1

    run(main)


def test_a_server_whose_opening_is_given_up_is_not_left_behind() -> None:
    async def main() -> None:
        server = McpSource(odd("one", "hang"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5), Agent(ScriptedModel([]), server):
                pass
        assert server.state == "stopped"
        assert len(asyncio.all_tasks()) == 1

    run(main)
