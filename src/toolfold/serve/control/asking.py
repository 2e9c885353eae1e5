"""A running gateway asked on its control socket, from another process of the same user."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolfold.errors import ToolfoldError
from toolfold.serve.control._unix_sockets import connected, own_uid
from toolfold.serve.control.messages import ControlError, Question, read_answer
from toolfold.serve.control.run_folder import (
    RunFolder,
    address_of,
    has_sockets,
    peer_uid,
    remove,
)
from toolfold.tool import Json

__all__ = ["ask", "sockets"]

PATIENCE = 3.0
"""How long an answer is waited for, in seconds."""

_ANSWER_LIMIT = 16 * 1024 * 1024


def sockets(states: Iterable[Path]) -> list[Path]:
    """Return the control sockets of some state folders, live or not.

    Raises:
        ToolfoldError: The system has no such sockets.
    """
    if not has_sockets():
        raise ToolfoldError(
            "running gateways cannot be asked on this system",
            hint="over HTTP, `/metrics` says how one stands",
        )
    return [place for state in states for place in RunFolder(state).places()]


async def ask(
    place: Path,
    verb: str,
    arguments: Mapping[str, Json] | None = None,
    *,
    patience: float = PATIENCE,
) -> Json:
    """Ask a gateway, and return the result.

    Args:
        place: Its socket; where nobody listens on it, it is removed.
        verb: What to ask.
        arguments: With what.
        patience: How long its answer is waited for, in seconds.

    Raises:
        ControlError: It refuses (with the code that it gave), it is gone (`gone`), does not
            answer (`silent`), or cannot be asked (`unreachable`).
    """
    try:
        async with asyncio.timeout(patience):
            return await _answer(place, Question(verb, arguments or {}))
    except (ConnectionRefusedError, FileNotFoundError):
        remove(place)
        raise ControlError("gone", "nobody listens there any more") from None
    except TimeoutError:
        raise ControlError("silent", f"does not answer within {patience:g} s") from None
    except ControlError:
        raise
    except (OSError, ValueError) as error:
        raise ControlError("unreachable", f"cannot be asked: {error}") from None


async def _answer(place: Path, question: Question) -> Json:
    reader, writer = await connected(address_of(place), _ANSWER_LIMIT)
    try:
        connection: socket.socket = writer.get_extra_info("socket")
        if peer_uid(connection) not in (None, own_uid()):
            raise ControlError("user", "it is another user's")
        writer.write(question.line())
        await writer.drain()
        line = await reader.readline()
        if not line:
            raise ControlError("closed", "closed the connection without an answer")
        return read_answer(line)
    finally:
        writer.close()
