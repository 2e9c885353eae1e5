"""The inspector as a process: it listens on this machine until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import webbrowser
from importlib.util import find_spec
from threading import Thread

import click

from toolfold.config.serve_settings import ServeSettings
from toolfold.errors import ConfigError, MissingExtraError
from toolfold.inspector.app import InspectorApp, guarded, new_token
from toolfold.serve._shutdown import StopSignal, stopping
from toolfold.serve.http.guard import is_loopback

__all__ = ["refuse_reachable", "run_inspector"]

PARTING = 1.0
"""How long answers under way have to end, in seconds."""


def refuse_reachable(host: str) -> None:
    """Raise `ConfigError` where others than this machine's programs reach a host."""
    if not is_loopback(host):
        raise ConfigError(
            f"the inspector is for this machine, and {host!r} can be reached by others",
            hint="listen on 127.0.0.1, and use a tunnel such as `ssh -L` from elsewhere",
        )


def run_inspector(app: InspectorApp, address: tuple[str, int], *, opens: bool) -> None:
    """Show a catalog in the browser until a signal comes.

    Args:
        app: What to show.
        address: The host and the port; 0 takes a free one.
        opens: Whether to open the browser.

    Raises:
        ConfigError: The address is not this machine's, or cannot be used.
        MissingExtraError: Nothing that listens is installed.
    """
    refuse_reachable(address[0])
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    Thread(target=app.warm, name="warming", daemon=True).start()
    with stopping() as stop:
        asyncio.run(_until_stopped(app, address, stop, opens=opens))


async def _until_stopped(
    app: InspectorApp, address: tuple[str, int], stop: StopSignal, *, opens: bool
) -> None:
    if find_spec("uvicorn") is None:
        raise MissingExtraError("`toolfold inspect`", "proxy")
    from toolfold.serve.http.listening import Listening

    stopped, token, settings = stop.event(), new_token(), ServeSettings()
    guard = guarded(app, address[0], token, settings)
    listening = Listening(guard, address, settings)
    serving = asyncio.create_task(listening.serve())
    waiting = asyncio.create_task(stopped.wait())
    located = asyncio.create_task(listening.address())
    await asyncio.wait((serving, located), return_when=asyncio.FIRST_COMPLETED)
    if located.done():
        link = f"{located.result()}/#{token}"
        click.echo(link)
        click.echo("the link holds its key; Ctrl-C ends it", err=True)
        if opens:
            await asyncio.to_thread(webbrowser.open, link)
        await asyncio.wait((serving, waiting), return_when=asyncio.FIRST_COMPLETED)
        await guard.close(PARTING)
        listening.stop()
    located.cancel()
    waiting.cancel()
    await serving
