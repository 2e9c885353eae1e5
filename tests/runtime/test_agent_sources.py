"""`Agent(sources=[…])`: MCP servers, functions and definitions in one conversation."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.gateways import odd, until
from support.outcomes import answered
from support.running import wait
from toolfold import Settings, Tool, ToolfoldError
from toolfold.runtime import (
    Activity,
    Agent,
    Approvals,
    Hook,
    Output,
    PendingCall,
    Registry,
    ResultMessage,
    Says,
    ScriptedModel,
    calls,
    says,
)
from toolfold.sources import CallContext, Definitions, Source, SourceError
from toolfold.sources.mcp.mcp_source import McpSource
from toolfold.tool import Json

FOLDED = Settings(enabled="on", cache_dir="off")
PLAIN = Settings(enabled="off")


def notes() -> Registry:
    registry = Registry()
    written: list[str] = []

    @registry.tool
    def add_note(text: str) -> str:
        """Write a note."""
        written.append(text)
        return f"note {len(written)}"

    @registry.tool(read_only=True)
    def list_notes() -> list[str]:
        """List all notes."""
        return written

    return registry


def script(*says: Says) -> ScriptedModel:
    return ScriptedModel(says)


def run(main: Callable[[], Awaitable[Any]], seconds: float = 50) -> Any:
    return wait(main(), seconds)


def results(messages: list[Any]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ResultMessage)]


# ---- one conversation over both


def test_one_conversation_finds_and_calls_tools_of_a_server_and_of_functions() -> None:
    model = script(
        calls(("tool_search", {"query": "say a text back | write a note"})),
        calls(
            ("tool_call", {"name": "one__echo", "arguments": {"x": "hi"}}),
            ("tool_call", {"name": "add_note", "arguments": {"text": "hi"}}),
            ("tool_call", {"name": "tea", "arguments": {}}),
        ),
        says("Done."),
    )

    async def main() -> None:
        sources: list[Source] = [McpSource(odd("one")), notes(), Definitions([{"name": "tea"}])]
        async with Agent(model, sources, settings=FOLDED) as agent:
            conversation = agent.conversation()
            done = await conversation.ask("Say hi, and note it.")

        found, *said = results(conversation.messages)
        assert done.stop == "end"
        assert "one__echo(x?: string" in found and "add_note(text: string)" in found
        assert said == [
            "one:hi",
            "note 1",
            "tea is not connected here: only its definition is known. Say so.",
        ]

    run(main)


class Watch(Hook):
    """Keeps what it sees, and changes what comes back of one tool."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, Json]]] = []

    def before_call(self, call: PendingCall) -> PendingCall | None:
        self.seen.append((call.via, call.tool.name, dict(call.arguments)))
        is_echo = call.tool.name == "one__echo"
        return call.with_arguments({"x": "changed"}) if is_echo else None

    def after_call(self, call: PendingCall, output: Output) -> Output | None:
        return Output(f"seen: {output.text}")


def test_hooks_and_approvals_see_the_real_tools_of_both() -> None:
    asked: list[str] = []

    async def ask(call: PendingCall) -> Any:
        asked.append(call.tool.name)
        return "deny" if call.tool.name == "one__wipe" else "once"

    watch = Watch()
    model = script(
        calls(
            ("tool_call", {"name": "one__echo", "arguments": {"x": "a"}}),
            ("tool_call", {"name": "one__wipe", "arguments": {"x": "b"}}),
            ("tool_call", {"name": "add_note", "arguments": {"text": "c"}}),
            ("tool_call", {"name": "list_notes", "arguments": {}}),
        ),
        says("Done."),
    )

    async def main() -> None:
        hooks = [watch, Approvals(ask)]
        sources = [McpSource(odd("one")), notes()]
        async with Agent(model, sources, settings=FOLDED, hooks=hooks) as agent:
            conversation = agent.conversation()
            await conversation.ask("Go.")

        assert watch.seen == [
            ("tool_call", "one__echo", {"x": "a"}),
            ("tool_call", "one__wipe", {"x": "b"}),
            ("tool_call", "add_note", {"text": "c"}),
            ("tool_call", "list_notes", {}),
        ]
        assert asked == ["one__wipe", "add_note"]
        echoed, refused, *others = results(conversation.messages)
        assert echoed == "seen: one:changed"
        assert refused.startswith("one__wipe was not run. The user said no.")
        assert others == ["seen: note 1", 'seen: ["c"]']

    run(main)


def test_progress_of_a_server_is_in_the_activity_feed() -> None:
    heard: list[Activity] = []
    model = script(calls(("one__progress", {"x": "step"})), says("Done."))

    async def main() -> None:
        source = McpSource(odd("one"))
        async with Agent(model, source, settings=PLAIN, on_activity=heard.append) as agent:
            await agent.run("Go.")

    run(main)
    progress = [(a.tool, a.message, a.fraction) for a in heard if a.kind == "progress"]
    assert progress == [("one__progress", f"step{i}", i / 5) for i in range(5)]
    assert [a.kind for a in heard if a.kind != "progress"] == ["started", "finished"]


def test_every_kind_of_content_is_a_text_for_the_model() -> None:
    async def main() -> None:
        async with Agent(script(), McpSource(odd("one")), settings=PLAIN) as agent:
            result = await agent.call("one__rich")

        assert result.text == (
            "hi\n"
            "[image/png, 3 bytes: not shown, it is no text]\n"
            "[audio/wav, 3 bytes: not shown, it is no text]\n"
            "[r: odd:///linked]\n"
            "t"
        )
        assert not result.is_error

    run(main)


def test_a_long_answer_of_a_server_is_cut_as_a_functions_is() -> None:
    async def main() -> None:
        async with Agent(script(), McpSource(odd("one")), settings=PLAIN) as agent:
            result = await agent.call("one__echo", {"x": "x" * 50_000})

        assert result.text.startswith("one:xxx")
        assert result.text.endswith(
            "(Cut: the first 32,000 of 50,004 characters. Ask for less, or for a part.)"
        )

    run(main)


# ---- servers that misbehave


def test_a_server_that_dies_over_a_call_is_a_text_and_nobody_elses_matter() -> None:
    async def main() -> None:
        model = script(
            calls(("one__die", {}), ("add_note", {"text": "still here"})),
            calls(("one__echo", {"x": "back"})),
            says("Done."),
        )
        sources = [McpSource(odd("one")), notes()]
        async with Agent(model, sources, settings=PLAIN) as agent:
            conversation = agent.conversation()
            done = await conversation.ask("Go.")

        died, noted, echoed = results(conversation.messages)
        assert done.stop == "end"
        assert died == (
            "one__die failed: the server 'one' died over it. It may have had effects. The server "
            "is being started again: try once more in a few seconds, or go on without it."
        )
        assert (noted, echoed) == ("note 1", "one:back")

    run(main)


def test_errors_of_a_server_are_texts_that_say_what_it_was() -> None:
    async def main() -> None:
        async with Agent(script(), McpSource(odd("one")), settings=PLAIN) as agent:
            refused = await agent.call("one__fail", {"x": "out of tea"})
            asking = await agent.call("one__elicit", {"x": "tea?"})

        assert (refused.is_error, asking.is_error) == (True, True)
        assert refused.text == "one__fail failed: MCPError: out of tea"
        assert asking.text == (
            "one__elicit failed: MCPError: the client does not support elicitation"
        )

    run(main)


def test_a_call_that_takes_too_long_is_given_up_and_the_server_told(tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    async def main() -> None:
        server = odd("one", env={"MARK": str(mark)}, call_timeout=0.5)
        async with Agent(script(), McpSource(server), settings=PLAIN) as agent:
            result = await agent.call("one__slow", {"x": "30"})

            assert result.is_error
            assert result.text == (
                "one__slow did not end within 0.5 s and was given up. It may have had effects. "
                "The server 'one' may be busy: ask it for less."
            )
            await until(lambda: "cancelled 30" in mark.read_text(), 10)

    run(main)


def test_servers_that_cannot_start_leave_the_others_alone() -> None:
    async def main() -> None:
        dead = McpSource(odd("dead", "die"))
        mute = McpSource(odd("mute", "hang", start_timeout=0.5))
        sources = [dead, mute, McpSource(odd("one")), notes()]
        async with Agent(script(), sources, settings=PLAIN) as agent:
            why = dead.error
            names = {tool.name for tool in agent.tools()}
            echoed = await agent.call("one__echo", {"x": "a"})

        assert {"one__echo", "add_note"} <= names
        assert not any(name.startswith(("dead__", "mute__")) for name in names)
        assert echoed.text == "one:a"
        assert why == "ended with 3 before it was ready: I cannot go on"

    run(main)


def test_a_list_that_changes_is_what_the_model_sees_next() -> None:
    async def main() -> None:
        model = script(
            calls(("one__grow", {"x": "later"})),
            says("It grows."),
            calls(("one__later", {"x": "a"})),
            says("There it is."),
        )
        source = McpSource(odd("one"))
        async with Agent(model, source, settings=PLAIN) as agent:
            changed = asyncio.Event()
            source.on_change(changed.set)
            conversation = agent.conversation()
            await conversation.ask("Grow.")
            before = len(agent.tools())
            await asyncio.wait_for(changed.wait(), 10)
            await conversation.ask("Use it.")

            assert len(agent.tools()) in (before, before + 1)
            assert results(conversation.messages) == ["later", "one:a"]
            assert conversation.report is not None
            assert conversation.report.tools_before == len(agent.tools()) == len(source.tools())

    run(main)


def test_allow_and_deny_of_a_server_hold_for_an_agent() -> None:
    async def main() -> None:
        server = odd("one", allow=("echo", "w*"), deny=("wipe",))
        async with Agent(script(), McpSource(server), settings=PLAIN) as agent:
            refused = await agent.call("one__wipe")

            assert [tool.name for tool in agent.tools()] == ["one__echo"]
            assert refused.text.startswith('"one__wipe" is not available in this session.')

    run(main)


# ---- opened and closed


async def pid_of(agent: Agent) -> int:
    return int((await agent.call("one__pid")).text)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_source_that_was_not_opened_says_so_with_the_fix() -> None:
    agent = Agent(script(says("Hi.")), [McpSource(odd("one")), notes()])

    with pytest.raises(SourceError, match="the source 'one' is not open") as caught:
        wait(agent.run("Hi."))

    assert isinstance(caught.value, ToolfoldError)
    assert caught.value.hint == "open it, or its agent, with `async with`"


@pytest.mark.slow
def test_nothing_is_left_of_an_agent_that_was_closed_and_it_can_be_opened_again() -> None:
    agent = Agent(script(), [McpSource(odd("one")), notes()], settings=PLAIN)
    pids: list[int] = []

    async def main() -> None:
        before = asyncio.all_tasks()
        for _ in "ab":
            async with agent:
                pids.append(await pid_of(agent))
            assert not is_running(pids[-1])
            assert asyncio.all_tasks() == before
            with pytest.raises(SourceError, match="is not open"):
                agent.tools()

    run(main)
    run(main)  # on another event loop
    assert len(set(pids)) == 4


def test_an_agent_and_its_subagents_share_what_was_opened_until_the_last_is_done() -> None:
    agent = Agent(script(), McpSource(odd("one")), settings=PLAIN)
    reader = agent.subagent("reader", allow=("*__pid", "*__echo"))

    async def main() -> None:
        async with agent, asyncio.TaskGroup() as group:
            first = await pid_of(agent)

            async def use() -> int:
                async with reader:
                    return await pid_of(reader)

            others = [group.create_task(use()) for _ in "abc"]
            await asyncio.wait(others)
            assert {task.result() for task in others} == {first} == {await pid_of(agent)}
        assert not is_running(first)

    run(main)


class Grudging(Source):
    """Cannot be opened, once another one is open."""

    name = "grudging"

    def __init__(self, other: McpSource) -> None:
        self._other = other
        self.pid = 0

    def tools(self) -> list[Tool]:
        return []

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        raise NotImplementedError

    async def __aenter__(self) -> Any:
        await until(lambda: self._other.state == "ready", 30)
        raise RuntimeError("not today")


def test_where_one_source_cannot_be_opened_the_others_are_closed() -> None:
    async def main() -> None:
        ready, slow = McpSource(odd("ready")), McpSource(odd("slow", "hang"))
        agent = Agent(script(), [ready, slow, Grudging(ready)])
        before = asyncio.all_tasks()

        with pytest.raises(RuntimeError, match="not today"):
            async with agent:
                pass

        assert (ready.state, slow.state) == ("stopped", "stopped")
        assert asyncio.all_tasks() == before

    run(main)


def test_opening_can_be_given_up_and_nothing_stays() -> None:
    async def main() -> None:
        slow = McpSource(odd("slow", "hang"))
        before = asyncio.all_tasks()

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3), Agent(script(), [slow, notes()]):
                pass

        assert slow.state == "stopped"
        assert asyncio.all_tasks() == before

    run(main)


class Tidy(Source):
    """Must be closed by the task that opened it, and meets the other while it opens."""

    def __init__(self, name: str, meeting: asyncio.Barrier) -> None:
        self.name = name
        self._meeting = meeting
        self.opened_by: asyncio.Task[Any] | None = None
        self.is_closed = False

    def tools(self) -> list[Tool]:
        return []

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        raise NotImplementedError

    async def __aenter__(self) -> Any:
        self.opened_by = asyncio.current_task()
        await self._meeting.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert asyncio.current_task() is self.opened_by
        self.is_closed = True


def test_sources_are_opened_all_at_once_and_closed_by_who_opened_them() -> None:
    async def main() -> None:
        meeting = asyncio.Barrier(3)
        sources = [Tidy(name, meeting) for name in "abc"]

        async with Agent(script(), sources):
            assert not any(source.is_closed for source in sources)

        assert all(source.is_closed for source in sources)

    run(main, 5)


def test_of_two_tools_with_one_name_the_later_sources_runs_behind_its_source(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = Registry("first"), Registry("second")
    first.add(Tool("tea"), run=_says("one"))
    second.add(Tool("tea"), run=_says("two"))
    agent = Agent(script(), [first, second])

    assert wait(agent.call("tea")).text == "one"
    second.add(Tool("milk"), run=_says("milk"))
    assert wait(agent.call("tea")).text == "one"
    assert wait(agent.call("second__tea")).text == "two"
    assert [record.getMessage() for record in caplog.records] == [
        "the tool tea of source second is served as second__tea: source first has one of that name"
    ]


def test_a_folded_tool_that_gave_way_is_found_described_and_run() -> None:
    first, second = Registry("first"), Registry("second")
    first.add(Tool("tea", "Make tea."), run=_says("one"))
    second.add(Tool("tea", "Make green tea."), run=_says("two"))
    agent = Agent(script(), [first, second], settings=Settings(enabled="on"))
    folded = agent.assemble()

    found = answered(folded.resolve("tool_search", {"query": "green tea"}))
    assert "second__tea" in found.text
    assert wait(agent.call("tool_call", {"name": "second__tea", "arguments": {}})).text == "two"
    assert wait(agent.call("tool_call", {"name": "tea", "arguments": {}})).text == "one"


def _says(text: str) -> Callable[[PendingCall], Awaitable[str]]:
    async def run(call: PendingCall) -> str:
        return text

    return run
