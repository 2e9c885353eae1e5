"""`toolfold.runtime.Registry`: the tools that a host can run."""

from __future__ import annotations

import pytest

from toolfold import ConfigError, InvalidToolError, Invocation, NameClashError, Settings, Tool, fold
from toolfold.runtime import PendingCall, Registry


async def echo(call: PendingCall) -> str:
    return call.tool.name


def test_a_decorated_function_is_still_the_function() -> None:
    registry = Registry()

    @registry.tool(toolset="maths", aliases=("sum",), read_only=True)
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    (tool,) = registry.tools()
    assert add(1, 2) == 3
    assert (tool.name, tool.description, tool.toolset_name) == ("add", "Add two numbers.", "maths")
    assert (tool.aliases, tool.annotations) == (("sum",), {"readOnlyHint": True})


def test_tools_in_any_wire_shape_are_registered_with_their_runner() -> None:
    registry = Registry()
    registry.add({"type": "function", "function": {"name": "a", "parameters": {}}}, echo)
    registry.add({"name": "b", "inputSchema": {"type": "object"}}, echo)
    registry.add(Tool("c"), echo, core=True)

    assert [tool.name for tool in registry.tools()] == ["a", "b", "c"]
    assert registry.core == ("c",)


def test_a_source_registers_all_its_tools_or_none() -> None:
    registry = Registry()
    registry.add(Tool("taken"), echo)

    with pytest.raises(NameClashError):
        registry.add_source([Tool("new"), Tool("taken")], echo)
    assert [tool.name for tool in registry.tools()] == ["taken"]

    registry.add_source([{"name": "x"}, {"name": "y"}], echo, source="files")
    assert registry.toolsets == ("files",)


def test_a_toolset_that_is_off_exists_for_nobody_until_it_is_on() -> None:
    registry = Registry()
    registry.add(Tool("a", toolset="one"), echo)
    registry.add(Tool("b", toolset="two"), echo)

    registry.disable("one")
    assert [tool.name for tool in registry.tools()] == ["b"]
    assert "a" not in registry
    assert registry.toolsets == ("one", "two")

    registry.enable("one")
    assert [tool.name for tool in registry.tools()] == ["a", "b"]


def test_mistakes_are_named_with_their_fix() -> None:
    registry = Registry()
    registry.add(Tool("a", toolset="one"), echo)

    with pytest.raises(ConfigError, match="no toolset is named 'tow'") as caught:
        registry.disable("tow")
    assert caught.value.hint == "there are: one"
    with pytest.raises(InvalidToolError, match="nothing runs the tool 'b'"):
        registry.add(Tool("b"))
    with pytest.raises(NameClashError):
        registry.add(Tool("a"), echo)
    with pytest.raises(ConfigError, match="the timeout of 'c' is 0"):
        registry.add(Tool("c"), echo, timeout=0)
    with pytest.raises(ConfigError, match="the result limit of 'd' is 0"):
        registry.add(Tool("d"), echo, result_limit=0)


def test_a_destructive_tool_runs_alone_unless_its_owner_says_otherwise() -> None:
    registry = Registry()
    wipe = Tool("wipe", annotations={"destructiveHint": True})

    assert registry.add(Tool("look"), echo).may_run_beside_others
    assert not registry.add(wipe, echo).may_run_beside_others
    registry.remove("wipe")
    assert registry.add(wipe, echo, parallel=True).may_run_beside_others


def test_a_tool_with_a_bridges_name_is_judged_where_something_is_folded() -> None:
    registry = Registry()
    registry.add(Tool("tool_call"), echo)

    with pytest.raises(NameClashError, match="toolfold's bridge"):
        fold(registry.tools(), settings=Settings(enabled="on"))
    assert not fold(registry.tools(), settings=Settings(enabled="off")).active
    renamed = fold(registry.tools(), settings=Settings(enabled="on", bridge_prefix="fold"))
    assert isinstance(renamed.resolve("tool_call", {}), Invocation)


def test_a_listener_hears_of_changes_until_it_leaves() -> None:
    registry = Registry()
    heard: list[str] = []
    first = registry.on_change(lambda: heard.append("first"))
    second = registry.prefixed("my").on_change(lambda: heard.append("second"))

    registry.add(Tool("a"), echo)
    first()
    first()
    registry.add(Tool("b"), echo)
    second()
    registry.remove("b")

    assert heard == ["first", "second", "second"]


def test_a_listener_may_leave_while_it_is_told() -> None:
    registry = Registry()
    heard: list[str] = []

    def once() -> None:
        heard.append("once")
        leave()

    leave = registry.on_change(once)
    registry.on_change(lambda: heard.append("other"))

    registry.add(Tool("a"), echo)
    registry.add(Tool("b"), echo)

    assert heard == ["once", "other", "other"]
