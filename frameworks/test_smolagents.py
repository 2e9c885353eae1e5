"""smolagents' own agent with three functions, before a model by a script, with 207 tools."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from pages import run_page
from scenario import Conversation, Scenario
from smolagents import OpenAIModel, Tool, ToolCallingAgent
from smolagents.models import ChatMessageStreamDelta
from three_functions import Ask, check
from world import (
    BRIDGE,
    CORE,
    CREATE,
    FOLD,
    ISSUE,
    REPORTED,
    SEARCH,
    TASK,
    ModelServer,
    Says,
    World,
    asked,
    call,
    messages,
    says,
)

from support.model_server import Received
from toolfold import EVERYTHING, Scope, Settings
from toolfold.adapters.smolagents import FoldedToolCallingAgent


def model_of(server: ModelServer) -> OpenAIModel:
    return OpenAIModel("any", api_base=server.openai, api_key="key")


class WorldTool(Tool):
    name, description, output_type = "tool", "A tool.", "string"
    inputs: ClassVar[dict[str, Any]] = {}
    skip_forward_signature_validation = True

    def __init__(self, world: World, name: str) -> None:
        super().__init__()
        found = world.tool(name)
        self._world, self.name, self.description = world, name, found.description or name
        required = found.parameters.get("required") or ()
        self.inputs = {
            key: {
                "type": "any",
                "description": key,
                **schema,
                **({} if key in required else {"nullable": True}),
            }
            for key, schema in (found.parameters.get("properties") or {}).items()
        }

    def forward(self, **arguments: Any) -> str:
        return self._world.run(self.name, arguments)


def tools_of(world: World) -> list[Any]:
    return [WorldTool(world, tool.name) for tool in world.tools]


class TestSmolagents(Scenario):
    always = ("final_answer",)

    # Its runs are threads, which nothing cancels; it refuses broken schemas itself; and its
    # transcript is text, so that these are asked below.
    test_a_stream_that_is_cancelled_leaves_nothing_behind = None
    test_a_broken_schema_harms_its_own_tool_alone = None
    test_a_streamed_run_folds_and_streams = None
    test_calls_beside_each_other_all_get_their_answers = None
    test_the_model_reads_its_own_words_again_and_the_list_stays = None

    def says(self, text: str) -> Says:
        return asked(9, "final_answer", answer=text)

    def results(self, request: Received) -> list[str]:
        said = messages(request)[-1]["content"]
        text = said if isinstance(said, str) else "".join(part["text"] for part in said)
        return [text.removeprefix("Observation:\n")]

    def tools(self, world: World) -> list[Any]:
        return tools_of(world)

    def begin(
        self,
        server: ModelServer,
        tools: list[Any],
        *,
        settings: Settings | None = FOLD,
        scope: Scope = EVERYTHING,
    ) -> Conversation:
        kept: list[Any] = []

        async def ask(text: str, pieces: list[str] | None = None) -> str:
            given: Any = {"tools": list(tools), "model": model_of(server), "verbosity_level": 0}
            if settings is None:
                agent = ToolCallingAgent(**given)
            else:
                agent = FoldedToolCallingAgent(**given, settings=settings, scope=scope, core=CORE)
            agent.memory.steps = kept
            return str(await asyncio.to_thread(agent.run, text, reset=False))

        return ask


FINAL = asked(9, "final_answer", answer="Done.")
TASK_DONE = (SEARCH, CREATE, FINAL)


def agent_of(server: ModelServer, world: World, **more: Any) -> FoldedToolCallingAgent:
    return FoldedToolCallingAgent(
        tools=tools_of(world), model=model_of(server), settings=FOLD, verbosity_level=0, **more
    )


def test_what_was_said_stays_and_so_does_the_list() -> None:
    with ModelServer(*TASK_DONE) as server:
        agent_of(server, World()).run(TASK)

    for earlier, later in zip(server.requests, server.requests[1:], strict=False):
        assert later.body["tools"] == earlier.body["tools"]
        assert messages(later)[: len(messages(earlier))] == messages(earlier)


def test_a_streamed_run_folds_and_streams() -> None:
    world = World()
    with ModelServer(*TASK_DONE) as server:
        agent = agent_of(server, world, stream_outputs=True)
        events = list(agent.run(TASK, stream=True))

    pieces = [event for event in events if isinstance(event, ChatMessageStreamDelta)]
    assert len(pieces) > len(server.requests) == 3
    assert events[-1].output == "Done."
    assert world.calls == REPORTED


def test_calls_beside_each_other_all_get_their_answers() -> None:
    world = World()
    both = says(
        call("tool_search", "a", query="send a mail"),
        call("tool_call", "b", name="forge__create_issue", arguments=ISSUE),
        call("tool_call", "c", name="forge__list_issues", arguments={"repo": "acme/website"}),
    )
    with ModelServer(both, FINAL) as server:
        agent = agent_of(server, world)
        agent.run(TASK)

    observed = str(messages(server.requests[1])[-1]["content"])
    assert "mail__send_mail(" in observed
    assert '"number": 3' in observed
    assert sorted(name for name, _ in world.calls) == ["forge__create_issue", "forge__list_issues"]
    assert sorted(agent.tools) == sorted([*BRIDGE, "final_answer"])


def test_prompts_and_plans_name_what_the_model_sees() -> None:
    with ModelServer(says(text="A plan."), *TASK_DONE) as server:
        agent_of(server, World(), planning_interval=5).run(TASK)

    assert "tool_search" in str(server.requests[0].body)
    assert "forge__create_issue" not in str(server.requests[0].body)
    assert "forge__create_issue" not in str(server.requests[1].body)


def test_the_guide_runs() -> None:
    world = World()
    with ModelServer(*TASK_DONE, FINAL) as server:
        run_page("adapters/smolagents.md", model=model_of(server), tools=tools_of(world))

    assert world.calls == REPORTED


def tool_of(function: Any) -> Tool:
    """Return a function as a tool: smolagents reads the source of those it is to wrap itself."""
    inputs = {
        "tool_search": {"query": {"type": "string", "description": "What you need"}},
        "tool_describe": {"name": {"type": "string", "description": "A name"}},
        "tool_call": {
            "name": {"type": "string", "description": "A name"},
            "arguments": {"type": "object", "description": "Its arguments"},
        },
    }[function.__name__]

    class Made(Tool):
        skip_forward_signature_validation = True
        name = function.__name__
        description = function.__doc__
        output_type = "string"

        def forward(self, **arguments: Any) -> str:
            return function(**arguments)

    Made.inputs = inputs
    return Made()


def asking(server: ModelServer) -> Ask:
    async def ask(functions: list, text: str) -> str:
        agent = ToolCallingAgent(
            tools=[tool_of(f) for f in functions], model=model_of(server), verbosity_level=0
        )
        return str(await asyncio.to_thread(agent.run, text))

    return ask


def test_three_functions_find_and_call_within_a_scope() -> None:
    check(asking, blocking=True, done=asked(9, "final_answer", answer="Done."))
