"""Who may call what in the runtime, and the failures of earlier systems as regressions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from support.running import wait
from toolfold import EVERYTHING, Scope, Settings, Tool
from toolfold.runtime import (
    Activity,
    Agent,
    Hook,
    PendingCall,
    Registry,
    ResultMessage,
    Says,
    ScriptedModel,
    calls,
    says,
)


def office(ran: list[str] | None = None) -> Registry:
    """Twenty tools of GitHub, six of a plugin, and one core tool."""
    registry = Registry()

    async def run(call: PendingCall) -> str:
        if ran is not None:
            ran.append(call.tool.name)
        return "ok"

    names = [f"github_action_{n}" for n in range(20)]
    registry.add_source([Tool(n, "Act on GitHub.", toolset="mcp-github") for n in names], run)
    plugin = [Tool(f"plugin_secret_{n}", "Do a secret thing.", toolset="plugin") for n in range(6)]
    registry.add_source(plugin, run)
    registry.add(Tool("terminal", "Run a command."), run, core=True)
    return registry


def agent_of(registry: Registry, *script: Says, scope: Scope = EVERYTHING, **more: object) -> Agent:
    given = {"settings": Settings(enabled="on"), "scope": scope, **more}
    return Agent(ScriptedModel(script), registry, **given)  # type: ignore[arg-type]


GITHUB = Scope(allow=("@mcp-github", "terminal"))


# ---- named regressions


def test_regression_a_restricted_session_cannot_find_the_whole_registry_through_the_bridge() -> (
    None
):
    # Seed 001: a session with toolsets=[mcp-github] saw 26 tools and could call any of them.
    agent = agent_of(office(), scope=GITHUB)

    found = wait(agent.call("tool_search", {"query": "plugin_secret_1", "limit": 20}))
    described = wait(agent.call("tool_describe", {"name": "plugin_secret_1"}))

    assert agent.assemble().report.tools_before == 21
    assert "plugin_secret" not in found.text.replace('"plugin_secret_1"', "")
    unknown = wait(agent.call("tool_describe", {"name": "plugin_nothing_1"}))
    assert described.text == unknown.text.replace("plugin_nothing_1", "plugin_secret_1")


def test_regression_a_restricted_session_cannot_call_a_tool_it_was_never_given() -> None:
    ran: list[str] = []
    agent = agent_of(office(ran), scope=GITHUB)

    through = wait(agent.call("tool_call", {"name": "plugin_secret_1", "arguments": {}}))
    direct = wait(agent.call("plugin_secret_1"))

    assert through.is_error
    assert direct.is_error
    assert ran == []


def test_regression_the_executor_asks_the_scope_on_both_paths() -> None:
    # Seed 001: the executor unwrapped tool_call and passed the bridge's own check by.
    ran: list[str] = []
    registry = office(ran)
    secret = ("tool_call", {"name": "plugin_secret_1", "arguments": {}})
    allowed = ("tool_call", {"name": "github_action_1", "arguments": {}})
    wait(agent_of(registry, calls(secret, allowed), says("done"), scope=GITHUB).run("at once"))
    registry.tool(lambda: "", name="alone", parallel=False)
    alone = Scope(allow=("@mcp-github", "alone"))
    script = (calls(("alone", {}), secret, allowed), says("done"))
    wait(agent_of(registry, *script, scope=alone).run("in order"))

    assert ran == ["github_action_1", "github_action_1"]


def test_regression_an_isolated_turn_keeps_every_tool_it_was_given() -> None:
    # openclaw#84141: a scheduled turn lost the tool it was asked to use.
    ran: list[str] = []
    registry = office(ran)
    agent = agent_of(
        registry,
        calls(("tool_search", {"query": "github"})),
        says("interactive"),
        calls(("tool_call", {"name": "github_action_7", "arguments": {}}), ("terminal", {})),
        says("scheduled"),
    )
    conversation = agent.conversation()
    wait(conversation.ask("look around"))

    done = wait(agent.run("run action 7"))

    assert done.text == "scheduled"
    assert ran == ["github_action_7", "terminal"]


def test_regression_an_isolated_turn_does_not_hide_core_tools() -> None:
    agent = agent_of(office(), says("done"))

    wait(agent.subagent("nightly", deny=("@plugin",)).run("the nightly work"))

    model = agent.model
    assert isinstance(model, ScriptedModel)
    names = [tool["function"]["name"] for tool in model.requests[0].tools]
    assert names == ["terminal", "tool_search", "tool_describe", "tool_call"]


def test_regression_hooks_approvals_and_the_feed_never_see_tool_call() -> None:
    # openclaw#85588, #79823: plugins and the activity feed saw `tool_call`.
    seen: list[str] = []

    class Spy(Hook):
        def before_call(self, call: PendingCall) -> None:
            seen.append(call.tool.name)

    heard: list[Activity] = []
    agent = agent_of(office(), hooks=[Spy()], on_activity=heard.append)

    wait(agent.call("tool_call", {"name": "github_action_3", "arguments": {}}))

    assert seen == ["github_action_3"]
    assert {activity.tool for activity in heard} == {"github_action_3"}


def test_regression_a_scoped_assembly_changes_nothing_outside_it() -> None:
    # Seed 001: a scoped assembly left its names in a process-wide list.
    registry = office()
    whole = agent_of(registry)
    before = whole.assemble()

    narrow = whole.subagent("reader", allow=("@mcp-github",))
    narrow.assemble()
    wait(narrow.call("tool_search", {"query": "github"}))
    after = whole.assemble()

    assert after.tools == before.tools
    assert after.catalog.names == before.catalog.names
    assert after.session == before.session
    assert len(registry) == 27


def test_regression_bridge_tools_cannot_call_each_other_nor_a_core_tool() -> None:
    ran: list[str] = []
    agent = agent_of(office(ran))

    for name in ("tool_call", "tool_search", "tool_describe", "terminal"):
        result = wait(agent.call("tool_call", {"name": name, "arguments": {}}))
        assert result.is_error
    assert ran == []


def test_regression_removing_tools_returns_to_direct_exposure() -> None:
    registry = office()
    agent = Agent(ScriptedModel([]), registry, context_length=2_000)
    assert agent.assemble().active

    for n in range(1, 20):
        registry.remove(f"github_action_{n}")
    registry.disable("plugin")

    assert not agent.assemble().active


# ---- what else holds


def test_a_subagent_of_a_restricted_agent_stays_restricted() -> None:
    ran: list[str] = []
    child = agent_of(office(ran), scope=GITHUB).subagent("child", allow=("*",))
    grandchild = child.subagent("grandchild", allow=("plugin_*", "github_action_1"))

    assert wait(grandchild.call("plugin_secret_1")).is_error
    assert not wait(grandchild.call("github_action_1")).is_error
    assert grandchild.assemble().catalog.names == ("github_action_1",)
    assert grandchild.name == "agent/child/grandchild"


def test_a_delegate_reaches_nothing_that_its_caller_may_not() -> None:
    ran: list[str] = []
    registry = office(ran)
    deputy = ScriptedModel([calls(("terminal", {}), ("github_action_1", {})), says("tried")])
    root = agent_of(registry)
    registry.add(*root.subagent("deputy", model=deputy).as_tool("delegate", "Do something."))
    reader = root.subagent("reader", deny=("terminal",))

    wait(reader.call("tool_call", {"name": "delegate", "arguments": {"task": "use the terminal"}}))

    assert ran == ["github_action_1"]


def test_code_that_calls_without_the_loop_passes_hooks_and_checks() -> None:
    registry = Registry()
    seen: list[object] = []

    class Spy(Hook):
        def before_call(self, call: PendingCall) -> None:
            seen.append(dict(call.arguments))

    @registry.tool
    def add(a: int, b: int) -> int:
        return a + b

    agent = agent_of(registry, hooks=[Spy()])

    assert wait(agent.call("add", {"a": 1, "b": 2})).text == "3"
    assert wait(agent.call("add", {"a": 1})).text.startswith("add was not run.")
    assert seen == [{"a": 1, "b": 2}]


def test_a_disabled_toolset_is_gone_for_a_running_conversation() -> None:
    registry = office()
    agent = agent_of(
        registry,
        calls(("tool_search", {"query": "secret"})),
        says("found"),
        calls(("tool_call", {"name": "plugin_secret_1", "arguments": {}})),
        says("no"),
    )
    conversation = agent.conversation()
    wait(conversation.ask("find"))
    registry.disable("plugin")
    wait(conversation.ask("use"))

    last = [m for m in conversation.messages if isinstance(m, ResultMessage)][-1]
    assert last.text.startswith('"plugin_secret_1" is not available in this session.')


patterns = st.lists(
    st.sampled_from(["*", "@plugin", "@mcp-*", "github_action_1*", "terminal", "*secret*", "x"]),
    max_size=3,
)


@given(st.lists(st.tuples(patterns, patterns), min_size=1, max_size=3), st.integers(0, 26))
def test_no_chain_of_subagents_runs_what_its_parent_may_not(
    steps: list[tuple[list[str], list[str]]], pick: int
) -> None:
    ran: list[str] = []
    registry = office(ran)
    name = registry.tools()[pick].name
    agent = agent_of(registry)
    allowed = True
    for allow, deny in steps:
        agent = agent.subagent("a", allow=allow, deny=deny)
        allowed = allowed and registry.tools()[pick] in Scope(tuple(allow), tuple(deny))

    wait(agent.call(name))
    wait(agent.call("tool_call", {"name": name, "arguments": {}}))

    assert bool(ran) == allowed
