"""Plays: what a model says to what it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scripted_model.exchange import Asked, Call, Offered, Part, Play, Reply, Say

__all__ = ["OneTask", "in_order"]

ASIDE = "A title"
"""What requests get that offer no tools: titles, summaries, a greeting to see if one is there."""


def in_order(replies: Sequence[Reply], last: str = "Done.") -> Play:
    """Return a play that gives replies one after the other, whatever is asked."""
    left: Iterator[Reply] = iter(replies)

    def play(asked: Asked) -> Reply:
        return next(left, [Say(last)]) if asked.tools else [Say(ASIDE)]

    return play


@dataclass(frozen=True, slots=True)
class OneTask:
    """A model that does one task through the bridge, knowing only what it can see.

    It searches, calls the tool that it wants if the search's answer shows it, and says what
    came of it. A tool that it can see it calls at once. Where the bridge is not among its tools
    and the client has a search of its own, it looks for the bridge there first, as a model would.
    """

    query: str
    tool: str
    arguments: Mapping[str, Any]
    search: str = "tool_search"
    call: str = "tool_call"
    ends: Sequence[str] = ("submit_and_exit",)
    """Tools of clients that want to be told so when the task is done."""

    own_search: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The searches that clients have, by the ending of their names, and what to ask them."""

    def __call__(self, asked: Asked) -> Sequence[Part]:
        """Return the next step."""
        if not asked.tools:
            return [Say(ASIDE)]
        direct = asked.tool(self.tool)
        if direct is not None:
            came = asked.text_of(self.tool)
            if came is None:
                return [Call.of(direct, self.arguments)]
            return self._end(asked, f"It came to: {came}")
        found = asked.text_of(self.search)
        if found is None:
            return self._step(asked, self.search, {"query": self.query})
        if self.tool not in found:
            return self._end(asked, f"I found no {self.tool} in: {found}")
        came = asked.text_of(self.call)
        if came is None:
            wrapped = {"name": self.tool, "arguments": dict(self.arguments)}
            return self._step(asked, self.call, wrapped)
        return self._end(asked, f"It came to: {came}")

    def _end(self, asked: Asked, answer: str) -> Sequence[Part]:
        end = next((tool for name in self.ends if (tool := asked.tool(name))), None)
        if end is None or asked.text_of(end.name) is not None:
            return [Say(answer)]
        required = end.parameters.get("required", ())
        kinds = end.parameters.get("properties", {})
        given = {key: True if kinds[key].get("type") == "boolean" else answer for key in required}
        return [Call.of(end, given)]

    def _step(self, asked: Asked, name: str, arguments: Mapping[str, Any]) -> Sequence[Part]:
        tool = self._visible(asked, name)
        if tool is not None:
            return [Call.of(tool, arguments)]
        for own, ask in self.own_search.items():
            tool = asked.tool(own)
            if tool is not None and asked.text_of(own) is None:
                return [Call.of(tool, ask)]
        return self._end(asked, f"I see no {name} among {asked.names}")

    def _visible(self, asked: Asked, name: str) -> Offered | None:
        own = [tool for tool in asked.tools if tool.name.endswith(name)]
        named = [tool for tool in own if tool.name not in self.own_search]
        return next((tool for tool in named if not tool.is_deferred), None)
