"""An HTTP API under the same approvals as a server: what waits for a person is not there.

Of an operation counts what a model reads, and also the request that a call of it sends: a
document that says the same and leads elsewhere has changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from toolfold import prompts
from toolfold.absent import AbsentSource
from toolfold.sources.calls import CallContext, Output
from toolfold.sources.openapi.openapi_source import OpenAPISource
from toolfold.sources.openapi.operation import Operation
from toolfold.sources.source import Bounds, Source
from toolfold.tool import Json, Tool

if TYPE_CHECKING:
    from toolfold.serve.trust.verdicts import Trust

__all__ = ["TrustedApi", "request_content"]

_log = logging.getLogger(__name__)


class TrustedApi(Source):
    """A source of an API's operations, without those that wait.

    Args:
        api: The API's source.
        trust: Which tools wait for a person's approval.
    """

    def __init__(self, api: OpenAPISource, trust: Trust) -> None:
        self.name = api.name
        self.api = api
        self._trust = trust
        self._listed: tuple[Tool, ...] | None = None
        self._admitted: tuple[Tool, ...] = ()
        self._reading = Lock()
        self.waiting = 0
        """How many of its tools wait for a person."""

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that need not wait, judged anew where the list is another."""
        with self._reading:
            listed = self.api.tools()
            if listed is not self._listed:
                self._listed = listed  # who decides meanwhile has it judged once more
                operations = self.api.operations
                requests = {name: request_content(each) for name, each in operations.items()}
                sifted = self._trust.sift(self.name, listed, requests)
                self._tell(len(sifted.quarantined))
                self._admitted = sifted.admitted
            return self._admitted

    @property
    def is_read(self) -> bool:
        """Whether to ask for the tools costs nothing."""
        return self._listed is self.api.tools() and not self._reading.locked()

    def _tell(self, waiting: int) -> None:
        if waiting and waiting != self.waiting:
            wait = "1 tool waits" if waiting == 1 else f"{waiting:,} tools wait"
            _log.warning("openapi %s: %s for approval: see `toolfold trust`", self.name, wait)
        self.waiting = waiting

    def judge_again(self) -> None:
        """Judge the list anew when it is next asked for, because a person has decided."""
        self._listed = None

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        """Send a call to the API, if the tool does not wait by now."""
        if not any(own.name == tool.name for own in self.tools()):
            return Output(prompts.not_available(context.call.tool.shown_name, ()), is_error=True)
        return await self.api.call(tool, arguments, context)

    def bounds(self, tool: Tool) -> Bounds:
        """Return what bounds the calls of a tool."""
        return self.api.bounds(tool)

    def absence(self) -> AbsentSource | None:
        """Return why the API cannot be asked now."""
        return self.api.absence()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a listener called when the tools have changed; return what ends that."""
        return self.api.on_change(listener)

    async def __aenter__(self) -> Self:
        await self.api.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.api.__aexit__(*error)


def request_content(operation: Operation) -> Json:
    """Return what a call of an operation sends: where to, and each argument's place in it."""
    places: dict[str, Json] = {p.argument: f"{p.location} {p.name}" for p in operation.parameters}
    body = operation.body
    if body is not None and body.argument is not None:
        places[body.argument] = "body"
    elif body is not None:
        places |= {name: f"body {each.name}" for name, each in body.properties.items()}
    return {
        "method": operation.method,
        "address": f"{operation.server}{operation.path}",
        "arguments": places,
    }
