"""The gateway's end of the control socket: it answers its own user, and nobody else.

What can be asked is a table of verbs. Whoever asks is known by the user at the other end,
where the system tells, beside the permissions of the folder. A request has a size and a
time, and only so many are open at once: a socket that is forgotten costs nothing. A gateway
that cannot have one says so and serves all the same.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeAlias

from toolfold.serve.control._unix_sockets import own_uid, served
from toolfold.serve.control.messages import (
    ControlError,
    answer_line,
    read_question,
    refusal_line,
)
from toolfold.serve.control.run_folder import RunFolder, has_sockets, peer_uid, remove
from toolfold.tool import Json

__all__ = ["ControlSocket", "Verb", "answered"]

Verb: TypeAlias = Callable[[Mapping[str, Json]], Awaitable[Json]]
"""What answers a request: its arguments in, a JSON value out."""

REQUEST_LIMIT = 64 * 1024
"""The longest request, in bytes."""

PATIENCE = 10.0
"""How long the next request of an open connection is waited for, in seconds."""

OPEN_AT_MOST = 16
"""How many connections may be open; further ones are closed at once."""

_log = logging.getLogger(__name__)


class ControlSocket:
    """Answers what this user asks a running gateway. Open it with `async with`.

    Args:
        state: The folder that `serve.state_dir` stands for.
        verbs: What can be asked, by name.
    """

    def __init__(self, state: Path, verbs: Mapping[str, Verb]) -> None:
        self._folder = RunFolder(state)
        self._verbs = dict(verbs)
        self._server: asyncio.Server | None = None
        self._place: Path | None = None
        self._answering: set[asyncio.Task[None]] = set()

    @property
    def place(self) -> Path | None:
        """Where it is; None where there is none."""
        return self._place

    async def __aenter__(self) -> Self:
        if not has_sockets():
            _log.debug("this system has no control socket")
            return self
        try:
            self._folder.clear()
            listening, self._place = self._folder.listen()
            self._server = await served(self._connected, listening, REQUEST_LIMIT)
        except OSError as error:
            _log.warning("`toolfold status` will not show this gateway: %s", error)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._place is not None:
            remove(self._place)
            self._place = None
        if self._server is not None:
            self._server.close()
        for task in self._answering:
            task.cancel()
        if self._answering:
            await asyncio.wait(self._answering)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            if len(self._answering) <= OPEN_AT_MOST and _is_ours(writer):
                await self._answer(reader, writer)
        except (OSError, TimeoutError):
            pass  # who asks nothing, or does not listen, is left alone
        except asyncio.CancelledError:
            pass  # the gateway ends
        finally:
            self._answering.discard(task)
            with suppress(OSError):
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            async with asyncio.timeout(PATIENCE):
                try:
                    line = await reader.readline()
                except ValueError:
                    error = ControlError("bad_request", "the request is too long")
                    writer.write(refusal_line(error))
                    await writer.drain()
                    return
            if not line.endswith(b"\n"):
                return
            writer.write(await self._answered(line))
            async with asyncio.timeout(PATIENCE):
                await writer.drain()

    async def _answered(self, line: bytes) -> bytes:
        try:
            question = read_question(line)
        except ControlError as error:
            return refusal_line(error)
        return (await answered(self._verbs, question.verb, question.arguments))[0]


async def answered(
    verbs: Mapping[str, Verb], name: str, arguments: Mapping[str, Json]
) -> tuple[bytes, str | None]:
    """Return a verb's answer as it is sent, and the code of the refusal where it is one.

    Args:
        verbs: What can be asked, by name.
        name: What is asked.
        arguments: With what.
    """
    try:
        verb = verbs.get(name)
        if verb is None:
            known = ", ".join(sorted(verbs))
            raise ControlError("unknown_verb", f"the verbs of this gateway are: {known}")
        return answer_line(await verb(arguments)), None
    except ControlError as error:
        return refusal_line(error), error.code
    except Exception:
        _log.exception("the control socket could not answer")
        error = ControlError("failed", "the gateway could not answer; see its log")
        return refusal_line(error), error.code


def _is_ours(writer: asyncio.StreamWriter) -> bool:
    """Whether it is this process's own user who asks, as far as the system tells."""
    connection: socket.socket = writer.get_extra_info("socket")
    uid = peer_uid(connection)
    if uid is None or uid == own_uid():
        return True
    _log.warning("the control socket refused the user %d", uid)
    return False
