"""`toolfold.adapters.functions`: sources behind three functions, for any framework."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from toolfold import Scope, ToolfoldError
from toolfold.adapters.functions import FoldedSources
from toolfold.demo.host import DemoHost
from toolfold.dispatch import Hook
from toolfold.sources import PendingCall, Refusal

ISSUE = {"repo": "acme/website", "title": "It is broken"}


def run(host: DemoHost, *calls: tuple[str, dict[str, object]], **options: object) -> list[str]:
    async def main() -> list[str]:
        async with FoldedSources(host.registry()) as tools:
            by_name = {f.__name__: f for f in tools.functions(**options)}  # type: ignore[arg-type]
            return [await by_name[name](**arguments) for name, arguments in calls]

    return asyncio.run(main())


def test_three_functions_find_describe_and_call() -> None:
    host = DemoHost()

    found, described, done = run(
        host,
        ("tool_search", {"query": "open an issue in the tracker"}),
        ("tool_describe", {"name": "forge__create_issue"}),
        ("tool_call", {"name": "forge__create_issue", "arguments": ISSUE}),
    )

    assert "forge__create_issue(repo: string" in found
    assert '"title"' in described
    assert '"number":3' in done.replace(" ", "")


def test_a_function_says_what_a_model_needs_to_know_of_it() -> None:
    search, describe, call = FoldedSources(DemoHost().registry()).functions()

    assert "tools" in (search.__doc__ or "")
    assert list(inspect.signature(search).parameters) == ["query", "limit"]
    assert [f.__name__ for f in (search, describe, call)] == [
        "tool_search",
        "tool_describe",
        "tool_call",
    ]


def test_what_is_outside_the_scope_is_neither_found_nor_called() -> None:
    found, refused = run(
        DemoHost(),
        ("tool_search", {"query": "open an issue in the tracker"}),
        ("tool_call", {"name": "forge__create_issue", "arguments": ISSUE}),
        scope=Scope(deny=("forge__create_*",)),
    )

    assert "forge__create_issue" not in found
    assert '"forge__create_issue" is not available in this session' in refused


def test_a_hook_may_refuse_a_call_and_hears_who_calls() -> None:
    heard: list[tuple[str, str]] = []

    class Never(Hook):
        async def before_call(self, call: PendingCall) -> Refusal:
            heard.append((call.agent, call.tool.name))
            return Refusal("not on a Sunday")

    async def main() -> str:
        async with FoldedSources(DemoHost().registry(), hooks=[Never()]) as tools:
            *_, call = tools.functions(caller="ada")
            return await call(name="forge__create_issue", arguments=ISSUE)

    assert "not on a Sunday" in asyncio.run(main())
    assert heard == [("ada", "forge__create_issue")]


def test_plain_functions_wait_in_their_thread_for_what_the_event_loop_does() -> None:
    async def main() -> tuple[str, list[str]]:
        async with FoldedSources(DemoHost().registry()) as tools:
            search, _, call = tools.blocking_functions()
            assert list(inspect.signature(search).parameters) == ["query", "limit"]
            assert not inspect.iscoroutinefunction(search)
            found = await asyncio.to_thread(search, "open an issue in the tracker")
            done = await asyncio.to_thread(call, name="forge__create_issue", arguments=ISSUE)
            with pytest.raises(ToolfoldError, match="its own event loop"):
                search("anything")
            return found, [done]

    found, (done,) = asyncio.run(main())

    assert "forge__create_issue(repo: string" in found
    assert "number" in done


def test_plain_functions_need_sources_that_are_open() -> None:
    with pytest.raises(ToolfoldError, match="not open"):
        FoldedSources(DemoHost().registry()).blocking_functions()
