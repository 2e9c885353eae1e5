"""The configuration watched, where that is switched on: looked at now and then.

A look costs one question to the system. A change counts when the file has looked the same
for a while, so that one which is being written is not read in the middle, and only where its
content is another, so that who touches it changes nothing. Editors that write a new file and
rename it are no different.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from toolfold.serve.reload.config_file import ConfigFile

__all__ = ["watch"]

LOOK_EVERY = 0.5
"""How often the file is looked at, in seconds."""

_log = logging.getLogger(__name__)


async def watch(
    file: ConfigFile,
    changed: Callable[[], Awaitable[None]],
    every: float | None = None,
    begun: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Call something whenever the file's content has changed and come to rest; for ever.

    Args:
        file: The file.
        changed: What to call.
        every: How often to look, in seconds.
        begun: What to call once the file is watched: what was written before is not seen here.
    """
    seconds = LOOK_EVERY if every is None else every
    known, digest = file.look(), await asyncio.to_thread(file.digest)
    if begun is not None:
        await begun()
    while True:
        await asyncio.sleep(seconds)
        now = file.look()
        if now == known:
            continue
        while True:  # until it looks the same twice
            await asyncio.sleep(seconds)
            again = file.look()
            if again == now:
                break
            now = again
        known = now
        content = await asyncio.to_thread(file.digest)
        if content == digest and content is not None:
            continue
        digest = content
        _log.info("`%s` has changed", file.path)
        await changed()
