"""Unix sockets and user ids, where the system has them; Windows has neither."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable

__all__ = ["connected", "own_uid", "served", "unix_socket"]

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_NONE_HERE = "this system has no control sockets"


def own_uid() -> int:
    """Return the user that this process runs as."""
    if sys.platform == "win32":
        raise OSError(_NONE_HERE)
    return os.geteuid()


def unix_socket() -> socket.socket:
    """Return a new socket that has no place yet."""
    if sys.platform == "win32":
        raise OSError(_NONE_HERE)
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


async def served(on_connection: Connected, listening: socket.socket, limit: int) -> asyncio.Server:
    """Serve the connections to a listening socket.

    Args:
        on_connection: Speaks with one who connects.
        listening: The socket.
        limit: How many bytes a line may have.
    """
    if sys.platform == "win32":
        raise OSError(_NONE_HERE)
    return await asyncio.start_unix_server(on_connection, sock=listening, limit=limit)


async def connected(path: str, limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a socket.

    Args:
        path: Where it is.
        limit: How many bytes a line may have.
    """
    if sys.platform == "win32":
        raise OSError(_NONE_HERE)
    return await asyncio.open_unix_connection(path, limit=limit)
