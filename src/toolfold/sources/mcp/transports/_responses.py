"""What became of a request: the server's own answer, or the end of its connection.

The protocol's library reports both by the same kind of error, and a server may use any
code and any text for its own. So they are told apart by where they came from. What was
read from the server is marked as said by it; over HTTP, where the library also puts errors
of its own among what it reads, each request notes what its response came to.
"""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, NamedTuple

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError

from toolfold.tool import Json

__all__ = ["FATE", "Answers", "Fate", "Said"]


class Said(NamedTuple):
    """The data of an error that came from the server's side."""

    data: Json


class Fate:
    """What became of one request over HTTP. The transport writes, who asked reads.

    Args:
        on_closed: Called where the server closes the stream of its response before it has
            answered, and is to be asked for the rest.
    """

    __slots__ = ("is_cut", "is_resumable", "on_closed", "status")

    def __init__(self, on_closed: Callable[[], Awaitable[None]] | None = None) -> None:
        self.on_closed = on_closed
        self.status: int | None = None
        """The status of the response, where the request was of a session."""
        self.is_resumable = False
        """Whether the response is a stream whose events have ids, to take it up again at one."""
        self.is_cut = False
        """Whether a stream of it has reached its end."""

    @property
    def is_refused(self) -> bool:
        """Whether the response may mean that the server does not know the session."""
        return self.status in (400, 404)


FATE: contextvars.ContextVar[Fate | None] = contextvars.ContextVar("fate", default=None)
"""What is to be noted of the request that this task works for."""


class Answers:
    """A stream of what a server says, with its errors marked as its own.

    Args:
        inner: The transport's stream.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def last_context(self) -> contextvars.Context | None:
        """The context of the request that the last message belongs to, where known."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        return _marked(await self._inner.receive())

    async def aclose(self) -> None:
        """Read no more."""
        await self._inner.aclose()

    def __aiter__(self) -> Answers:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return _marked(await self._inner.__anext__())

    async def __aenter__(self) -> Answers:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


def _marked(item: SessionMessage | Exception) -> SessionMessage | Exception:
    if not isinstance(item, SessionMessage) or not isinstance(item.message, JSONRPCError):
        return item
    error = item.message.error
    said = error.model_copy(update={"data": Said(error.data)})
    return SessionMessage(item.message.model_copy(update={"error": said}), item.metadata)
