"""What a framework without an adapter does with three functions: the same for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from world import HIDDEN_FROM_READER, READER, ModelServer, Says, asked, says

from toolfold import EVERYTHING, Scope
from toolfold.adapters.functions import FoldedSources
from toolfold.demo.host import DemoHost
from toolfold.dispatch import CallRecord, Silent

__all__ = ["Ask", "check"]

Ask: TypeAlias = Callable[[list[Any], str], Awaitable[str]]
"""Gives an agent of the framework three functions and a request, and returns its answer."""

ISSUE = {"repo": "acme/website", "title": "It is broken"}
SEARCH = asked(1, "tool_search", query="open an issue in the tracker")
WRONG = asked(2, "tool_call", name="forge__create_issue", arguments={"title": "x"})
CREATE = asked(3, "tool_call", name="forge__create_issue", arguments=ISSUE)


class Heard(Silent):
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, object]] = []

    def called(self, record: CallRecord) -> None:
        self.calls.append((record.principal, record.tool, record.arguments))


def check(
    asking: Callable[[ModelServer], Ask],
    *,
    blocking: bool = False,
    done: Says = says(text="Done."),  # noqa: B008
) -> None:
    """Two users at once: one finds a tool, errs, and calls it; one may not know of it."""
    heard = Heard()
    script = (SEARCH, WRONG, CREATE, done)

    async def main() -> tuple[str, str]:
        async with FoldedSources(DemoHost().registry(), observers=[heard]) as tools:

            def functions(scope: Scope, caller: str) -> list[Any]:
                made = tools.blocking_functions if blocking else tools.functions
                return list(made(scope=scope, caller=caller))

            async with asyncio.TaskGroup() as group:
                one = group.create_task(asking(first)(functions(EVERYTHING, "ada"), "Report it."))
                two = group.create_task(asking(second)(functions(READER, "bob"), "Report it."))
            return one.result(), two.result()

    with ModelServer(*script) as first, ModelServer(*script) as second:
        answers = asyncio.run(main())

    assert answers == ("Done.", "Done.")
    assert [call[:2] for call in heard.calls] == [("ada", "forge__create_issue")]
    assert heard.calls[0][2] == ISSUE
    for server in (first, second):
        names = [t["function"]["name"] for t in server.requests[0].body["tools"]]
        assert set(names) - {"final_answer"} == {"tool_search", "tool_describe", "tool_call"}
    said = [str(request.body["messages"][-1]) for request in first.requests]
    assert "forge__create_issue(repo: string" in said[1]
    assert "forge__create_issue(repo: string" in said[2]
    kept = str(second.requests[1].body["messages"][-1])
    assert HIDDEN_FROM_READER not in kept
    assert "is not available in this session" in str(second.requests[2].body["messages"][-1])
