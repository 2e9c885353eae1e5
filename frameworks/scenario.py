"""What every adapter shows, in its framework's own runner: one suite, and a translation each.

A framework's test file says how its tools are made of the world's and how its agent is asked;
what must hold then is the same for all of them, and stands here. Each file has the tests of its
framework's own idioms behind it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from world import (
    BRIDGE,
    CORE,
    CREATE,
    DIRECT,
    FOLD,
    FORBIDDEN,
    HIDDEN_FROM_READER,
    ISSUE,
    MISTAKES,
    READER,
    REPORTED,
    SEARCH,
    TASK,
    ModelServer,
    Says,
    World,
    asked,
    call,
    called,
    last_results,
    messages,
    says,
    tool_names,
    tools_tokens,
)

from support.model_server import Raw, Received
from toolfold import EVERYTHING, Scope, Settings
from toolfold.fold import fold
from toolfold.tool import Tool

__all__ = ["Conversation", "Scenario"]

Conversation: TypeAlias = Callable[..., Awaitable[str]]
"""Takes what the user says, and a list for the pieces of a streamed answer; returns the answer.
Asked again, it goes on."""


class Scenario:
    """The tests. A framework's class has `tools` and `begin`."""

    is_guided = True
    """Whether it is the adapter's to tell the model how folded tools are reached."""

    always: tuple[str, ...] = ()
    """What the framework itself lists besides."""

    answers_unknown = True
    """Whether it is the adapter's to answer the call of a name that nothing has."""

    @property
    def done(self) -> Says:
        """The model's last word."""
        return self.says("Done.")

    @property
    def ours(self) -> tuple[Says, ...]:
        """The task, done by a model whose tools are folded."""
        return SEARCH, CREATE, self.done

    def says(self, text: str) -> Says:
        """Return how the model says its last word."""
        return says(text=text)

    def results(self, request: Received) -> list[str]:
        """Return what the last calls came to, as the request tells the model."""
        return last_results(request)

    def said(self, request: Received) -> list[Any]:
        """Return what a request says was said, without what the framework itself changes."""
        return messages(request)

    def tools(self, world: World) -> list[Any]:
        """Return the world's tools as the framework's."""
        raise NotImplementedError

    def begin(
        self,
        server: ModelServer,
        tools: list[Any],
        *,
        settings: Settings | None = FOLD,
        scope: Scope = EVERYTHING,
    ) -> Conversation:
        """Return a conversation with an agent of the framework.

        Args:
            server: The model.
            tools: The framework's tools, which may be others when it is asked again.
            settings: How to fold; None: without the adapter.
            scope: What the user may use.
        """
        raise NotImplementedError

    def ask(self, server: ModelServer, world: World, **more: Any) -> str:
        """Return the answer to the task, in a conversation of its own."""
        return asyncio.run(_answer(self.begin(server, self.tools(world), **more)))

    # ---- the task

    def test_the_model_sees_the_bridge_finds_a_tool_and_calls_it(self) -> None:
        world = World()
        with ModelServer(*self.ours) as server:
            assert self.ask(server, world) == "Done."

        assert sorted(tool_names(server.requests[0])) == sorted([*CORE, *BRIDGE, *self.always])
        told = "Not all of your tools are listed" in str(messages(server.requests[0]))
        assert told is self.is_guided
        assert "forge__create_issue(repo: string" in self.results(server.requests[1])[0]
        assert '"number": 3' in _plain(self.results(server.requests[2])[0])
        assert world.calls == REPORTED

    def test_the_model_reads_its_own_words_again_and_the_list_stays(self) -> None:
        world = World()

        async def main() -> None:
            conversation = self.begin(server, self.tools(world))
            await conversation(TASK)
            await conversation("Thanks.")

        with ModelServer(*self.ours, self.done) as server:
            asyncio.run(main())

        assert called(server.requests[3]) == [
            ("tool_search", {"query": "open an issue in the tracker"}),
            ("tool_call", {"name": "forge__create_issue", "arguments": ISSUE}),
        ]
        for earlier, later in zip(server.requests, server.requests[1:], strict=False):
            assert later.body["tools"] == earlier.body["tools"]
            said = self.said(earlier)
            assert self.said(later)[: len(said)] == said

    def test_a_streamed_run_folds_and_streams(self) -> None:
        world, pieces = World(), list[str]()

        async def main() -> str:
            return await self.begin(server, self.tools(world))(TASK, pieces)

        with ModelServer(SEARCH, CREATE, self.says("It is reported now.")) as server:
            assert asyncio.run(main()) == "It is reported now."

        assert all(request.body["stream"] for request in server.requests)
        assert len(pieces) > 1
        assert "".join(pieces) == "It is reported now."
        assert world.calls == REPORTED

    def test_a_model_corrects_its_mistakes(self) -> None:
        world = World()
        with ModelServer(*MISTAKES, CREATE, self.done) as server:
            assert self.ask(server, world) == "Done."

        missing, nearly, directly, bridge = (self.results(r)[0] for r in server.requests[1:5])
        assert "forge__create_issue(repo: string" in missing
        assert "Did you mean forge__create_issue" in nearly
        assert not self.answers_unknown or "Did you mean forge__create_issue" in directly
        assert "tool_call" in bridge
        assert world.calls == REPORTED

    def test_a_folded_tool_called_by_its_name_runs(self) -> None:
        world = World()
        with ModelServer(DIRECT[0], self.done) as server:
            assert self.ask(server, world) == "Done."

        assert world.calls == REPORTED

    def test_calls_beside_each_other_all_get_their_answers(self) -> None:
        world = World()
        both = says(
            call("tool_search", "a", query="open an issue"),
            call("tool_search", "b", query="send a mail"),
            call("tool_call", "c", name="forge__create_issue", arguments=ISSUE),
            call("tool_call", "d", name="forge__list_issues", arguments={"repo": "acme/website"}),
        )
        with ModelServer(both, self.done) as server:
            self.ask(server, world)

        found, mail, made, listed = map(_plain, self.results(server.requests[1]))
        assert "forge__create_issue(" in found
        assert "mail__send_mail(" in mail
        assert '"number": 3' in made
        assert '"issues"' in listed or '"number"' in listed
        assert sorted(name for name, _ in world.calls) == [
            "forge__create_issue",
            "forge__list_issues",
        ]

    # ---- who may use what

    def test_two_conversations_at_once_share_nothing(self) -> None:
        world = World()

        async def main() -> None:
            tools = self.tools(world)
            async with asyncio.TaskGroup() as group:
                group.create_task(_answer(self.begin(one, tools)))
                group.create_task(_answer(self.begin(two, tools, scope=READER)))

        with ModelServer(*self.ours) as one, ModelServer(*self.ours) as two:
            asyncio.run(main())

        assert world.calls == REPORTED
        assert HIDDEN_FROM_READER in self.results(one.requests[1])[0]
        assert HIDDEN_FROM_READER not in self.results(two.requests[1])[0]

    def test_what_a_user_may_not_use_is_neither_found_described_called_nor_named(self) -> None:
        world = World()
        with ModelServer(*FORBIDDEN[:-1], self.done) as server:
            self.ask(server, world, scope=READER)

        assert world.calls == []
        answers = [self.results(request)[0] for request in server.requests[1:]]
        assert HIDDEN_FROM_READER not in answers[0]
        for answer in answers[1:] if self.answers_unknown else answers[1:-1]:
            assert f'"{HIDDEN_FROM_READER}" is not available in this session' in _plain(answer)
        assert "forge__update_issue" not in str(server.requests[-1].body)

    # ---- what it costs

    def test_two_hundred_tools_cost_a_fraction(self) -> None:
        costs = []
        for settings in (None, FOLD):
            with ModelServer(self.done) as server:
                self.ask(server, World(), settings=settings)
            costs.append(tools_tokens(server.requests[0]))

        listed, folded = costs
        assert listed > 20_000
        assert folded < listed / 30

    def test_below_the_gate_nothing_changes(self) -> None:
        bodies = []
        for settings in (None, Settings()):
            with ModelServer(self.done) as server:
                self.ask(server, World(tools=World().tools[:2]), settings=settings)
            bodies.append(server.requests[0].body)

        assert bodies[0] == bodies[1]

    # ---- what strangers do

    def test_a_tool_with_a_name_of_the_bridges_is_found_and_runs(self) -> None:
        shed = _tool("tool_search", "Look for hammers in the shed.", shed={"type": "string"})
        world = World({shed: lambda shed: f"two hammers in the {shed}"})
        script = (
            asked(1, "toolfold_search", query="hammers in the shed"),
            asked(2, "toolfold_call", name="tool_search", arguments={"shed": "north"}),
            self.done,
        )
        with ModelServer(*script) as server:
            assert self.ask(server, world) == "Done."

        assert "tool_search" not in tool_names(server.requests[0])
        assert "tool_search(shed: string" in self.results(server.requests[1])[0]
        assert "two hammers in the north" in self.results(server.requests[2])[0]

    def test_a_bridge_among_the_tools_is_left_to_answer_for_itself(self) -> None:
        inner = fold(World().tools, settings=FOLD, shape="plain")
        bridge = [
            Tool(r["name"], r["description"], r["parameters"])
            for r in inner.tools
            if r["name"] in BRIDGE
        ]
        world = World({tool: lambda **_: "from afar" for tool in bridge}, tools=World().tools[:2])
        with ModelServer(SEARCH, self.done) as server:
            self.ask(server, world)

        assert [name for name, _ in world.calls] == ["tool_search"]
        assert "from afar" in self.results(server.requests[1])[0]

    @pytest.mark.timeout(600)  # Haystack checks each schema at length
    def test_five_thousand_tools_fold(self) -> None:
        many = [
            replace(tool, name=f"s{n}__{tool.name}") for n in range(25) for tool in World().tools
        ]
        world = World(tools=many[:5000])
        script = (asked(2, "tool_call", name="s7__forge__create_issue", arguments=ISSUE), self.done)
        began = time.process_time()
        with ModelServer(SEARCH, *script) as server:
            assert self.ask(server, world) == "Done."

        assert time.process_time() - began < 60
        assert tools_tokens(server.requests[0]) < 1000
        assert world.calls == [("s7__forge__create_issue", ISSUE)]

    def test_a_broken_schema_harms_its_own_tool_alone(self) -> None:
        broken = [
            Tool("lost", "Find what is lost.", {"type": "object", "$ref": "#/$defs/nowhere"}),
            Tool("odd", "Do what is odd.", {"type": "object", "properties": {"a": {"type": "b"}}}),
            Tool("loop", "Go round.", {"type": "object", "properties": {"a": {"$ref": "#"}}}),
        ]
        world = World({tool: lambda **_: "ran" for tool in broken})
        tries = [asked(n, "tool_call", name=t.name, arguments={}) for n, t in enumerate(broken, 3)]
        with ModelServer(SEARCH, *tries, CREATE, self.done) as server:
            assert self.ask(server, world) == "Done."

        assert world.calls[-1:] == REPORTED
        assert len(server.requests) == 6

    def test_a_tool_that_fails_fails_as_it_does_when_it_is_listed(self) -> None:
        def boom() -> str:
            raise RuntimeError("the boiler is cold")

        outcomes = []
        for settings, name, arguments in (
            (None, "boiler", {}),
            (FOLD, "tool_call", {"name": "boiler", "arguments": {}}),
        ):
            world = World({_tool("boiler", "Heat the boiler."): boom}, tools=World().tools[:2])
            with ModelServer(asked(1, name, **arguments), self.done) as server:
                try:
                    self.ask(server, world, settings=settings)
                    outcomes.append(_plain(self.results(server.requests[1])[0]))
                except Exception as error:
                    outcomes.append(f"{type(error).__name__}: {error}")
            assert world.calls == [("boiler", {})]

        assert outcomes[0] == outcomes[1]

    def test_a_huge_result_comes_back_as_it_does_when_it_is_listed(self) -> None:
        results = []
        for settings, name, arguments in (
            (None, "log", {}),
            (FOLD, "tool_call", {"name": "log", "arguments": {}}),
        ):
            world = World(
                {_tool("log", "Read the log."): lambda: "line\n" * 200_000}, tools=World().tools[:2]
            )
            with ModelServer(asked(1, name, **arguments), self.done) as server:
                self.ask(server, world, settings=settings)
            results.append(self.results(server.requests[1])[0])

        assert results[0] == results[1]
        assert len(results[0]) > 999_000

    def test_a_tool_that_is_gone_when_it_is_called_is_answered_for(self) -> None:
        world = World()

        async def main() -> str:
            tools = self.tools(world)
            conversation = self.begin(server, tools)
            await conversation(TASK)
            tools[:] = self.tools(World(tools=[t for t in world.tools if "create_i" not in t.name]))
            return await conversation("Again.")

        with ModelServer(*self.ours, asked(5, "tool_call", **_REPORT), self.done) as server:
            assert asyncio.run(main()) == "Done."

        assert "is not available" in self.results(server.requests[-1])[0]
        assert world.calls == REPORTED

    @pytest.mark.parametrize("place", [1, 2, 3])
    def test_a_stream_that_is_cancelled_leaves_nothing_behind(self, place: int) -> None:
        world = World()

        async def main() -> str:
            tools = self.tools(world)
            broken = asyncio.ensure_future(self.begin(server, tools)(TASK, []))
            await server.heard(place)
            broken.cancel()
            with pytest.raises(asyncio.CancelledError):
                await broken
            del world.calls[:]
            return await self.begin(server, tools)(TASK, [])

        script = [*self.ours[: place - 1], _never, *self.ours]
        with ModelServer(*script) as server:
            assert asyncio.run(main()) == "Done."

        assert world.calls == REPORTED


_REPORT = {"name": "forge__create_issue", "arguments": ISSUE}


def _never(request: Received) -> Raw:
    """Return a stream that begins, with a comment, and goes no further.

    A first word would come while the task is cancelled, and before 3.12 `asyncio.wait_for`, which
    LangChain's client waits for words with, forgets a cancellation that meets its result.
    """
    return Raw([b": a moment\n\n"], then="hold")


async def _answer(conversation: Conversation) -> str:
    return await conversation(TASK)


def _tool(name: str, description: str, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name, description, schema)


def _plain(text: str) -> str:
    """Return a result without the quoting of those that put texts into JSON."""
    return text.replace('\\"', '"')
