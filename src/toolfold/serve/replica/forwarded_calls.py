"""What replicas say to each other of a server that one of them runs for all: the words of it.

An answer has the fencing token of the tenure that it was given in. `gone` says that the server
did not answer, and whether nothing was run for certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

from toolfold._json_values import compact_bytes
from toolfold.errors import ToolfoldError
from toolfold.sources.mcp.connection import GoneError, UnheardError
from toolfold.tool import Json, is_object

__all__ = [
    "ANSWER_LIMIT",
    "ASK",
    "CANCEL",
    "JOIN",
    "NOTE",
    "REQUEST",
    "TOLD",
    "WATCH",
    "Answered",
    "answer_error",
    "answer_gone",
    "answer_result",
    "unwrapped",
]

JOIN = "server.join"
"""A replica wants to reach a server, and to hear of its changes."""

REQUEST = "server.request"
"""A request for the server, or for one of its whole lists."""

CANCEL = "server.cancel"
"""A request that was given up."""

WATCH = "server.watch"
"""The resources whose changes a replica's clients want to hear of."""

ASK = "server.ask"
"""A question of the server to the client of a request."""

NOTE = "server.note"
"""Progress of a request, or a log message."""

TOLD = "server.told"
"""A change that the server tells of."""

ANSWER_LIMIT = 16 * 1024 * 1024
"""The longest answer that one replica sends to another, in bytes."""


def answer_result(token: int, result: Mapping[str, Json]) -> dict[str, Json]:
    """Return an answer that is a result, or that says why it cannot be sent."""
    answer: dict[str, Json] = {"token": token, "result": dict(result)}
    try:
        size = len(compact_bytes(answer))
    except ToolfoldError:
        return answer_error(token, INTERNAL_ERROR, "the server's answer cannot be passed on")
    if size <= ANSWER_LIMIT:
        return answer
    text = f"the server's answer has {size} bytes, and replicas pass on {ANSWER_LIMIT}"
    return answer_error(token, INTERNAL_ERROR, text)


def answer_error(token: int, code: int, message: str, data: Json = None) -> dict[str, Json]:
    """Return an answer that is an error of the server."""
    return {"token": token, "error": {"code": code, "message": message, "data": data}}


def answer_gone(token: int, reason: str, *, unheard: bool) -> dict[str, Json]:
    """Return what is said where the server did not answer.

    Args:
        token: The token of the tenure.
        reason: Why, as a clause.
        unheard: Whether nothing was run.
    """
    return {"token": token, "gone": reason, "unheard": unheard}


class Answered(NamedTuple):
    """An answer of another replica."""

    token: int
    result: dict[str, Json]


def unwrapped(answer: Json) -> Answered:
    """Return the result in an answer.

    Raises:
        MCPError: It is an error of the server.
        GoneError: The server did not answer.
    """
    if not is_object(answer) or not isinstance(answer.get("token"), int):
        raise GoneError(CONNECTION_CLOSED, "the other replica's answer is none")
    result, error = answer.get("result"), answer.get("error")
    if is_object(result):
        return Answered(answer["token"], result)
    if is_object(error):
        raise MCPError(int(error["code"]), str(error["message"]), error.get("data"))
    kind = UnheardError if answer.get("unheard") is True else GoneError
    raise kind(CONNECTION_CLOSED, str(answer.get("gone")))
