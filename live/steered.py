"""A model that is told, reply by reply, which function it must call.

A model of 135 million parameters does not choose tools by itself. Told which to call it
writes the arguments, and a call of its own goes over the wire: that is what a live run is
for. Where nothing is said the reply is the model's own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping

from live.server import MODEL, Server
from toolfold.runtime import Reply, Request, TextDelta
from toolfold.runtime.clients import OpenAIChat
from toolfold.tool import Json, Shape

__all__ = ["Steered", "client", "forced"]

_SETTINGS: Mapping[str, Json] = {"temperature": 0, "seed": 7}
_RETRIES = 1


def forced(name: str) -> dict[str, Json]:
    """Return the field of a request that makes a model call a function."""
    return {"tool_choice": {"type": "function", "function": {"name": name}}}


def client(server: Server, **parameters: Json) -> OpenAIChat:
    """Return a client of a server, with further fields for every request."""
    return OpenAIChat(
        MODEL,
        base_url=server.base_url,
        api_key="",
        timeout=120,
        retries=_RETRIES,
        parameters={**_SETTINGS, **parameters},
    )


class Steered:
    """A model whose next replies can be forced.

    Args:
        server: Where the model is.
    """

    shape: Shape = "openai-chat"
    name = MODEL

    def __init__(self, server: Server) -> None:
        self._free = client(server)
        self._forced: dict[str, OpenAIChat] = {}
        self._server = server
        self.next: deque[str | None] = deque()
        """The functions that the next replies must call; None for a reply of its own."""

    async def aclose(self) -> None:
        """Close the connections."""
        for each in (self._free, *self._forced.values()):
            await each.aclose()

    def stream(self, request: Request) -> AsyncIterator[TextDelta | Reply]:
        """Yield the reply's text as it comes, then the `Reply`."""
        name = self.next.popleft() if self.next else None
        if name is None:
            return self._free.stream(request)
        if name not in self._forced:
            self._forced[name] = client(self._server, **forced(name))
        return self._forced[name].stream(request)
