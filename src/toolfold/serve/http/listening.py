"""An application that listens at an address, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from toolfold.config.serve_settings import ServeSettings
from toolfold.errors import ConfigError
from toolfold.serve.http.connections import BACKLOG, Connections

__all__ = ["Listening"]

_LOOKS = 0.02


class Listening:
    """Serves an application over HTTP.

    Args:
        app: The application.
        address: The host and the port; 0 takes a free one.
        settings: How many connections there may be, and how long one may say nothing.
        dated: Whether answers get a date of ours.
    """

    def __init__(
        self, app: Any, address: tuple[str, int], settings: ServeSettings, *, dated: bool = True
    ) -> None:
        import uvicorn

        self._host, self._port = address
        connections = Connections(settings.max_connections, settings.request_timeout)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                host=self._host,
                port=self._port,
                log_config=None,
                access_log=False,
                lifespan="on",
                timeout_graceful_shutdown=1,
                server_header=False,
                date_header=dated,
                http=connections.protocol(),
                backlog=BACKLOG,
            )
        )
        # Our own handler of signals does more than the library's.
        setattr(self._server, "capture_signals", contextlib.nullcontext)  # noqa: B010

    async def serve(self) -> None:
        """Serve until it is stopped.

        Raises:
            ConfigError: The address cannot be used.
        """
        try:
            await self._server.serve()
        except SystemExit:
            raise ConfigError(
                f"the address {_shown(self._host)}:{self._port} cannot be used",
                hint="choose another port, or end what listens there",
            ) from None

    async def address(self) -> str:
        """Wait until it listens, and return where."""
        while not self._server.started:  # noqa: ASYNC110
            await asyncio.sleep(_LOOKS)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://{_shown(self._host)}:{port}"

    def stop(self) -> None:
        """Have it stop."""
        self._server.should_exit = True


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
