"""A server's process: started with few variables, ended with all its children.

Every process is the leader of a group of its own. Ending it closes its input, waits a
moment, then ends the whole group, so that what the server started dies with it, also
where the server itself has left before. This module knows nothing of the protocol, so
that processes can start while the protocol's library is still being imported.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from toolfold._bounds import one_line
from toolfold.errors import ToolfoldError
from toolfold.sources.mcp.transports import _process_groups as process_groups
from toolfold.sources.mcp.transports._pace import Pace

if TYPE_CHECKING:
    from toolfold.sources.mcp.server import Server

__all__ = ["Child", "StartError", "start"]

LINE_LIMIT = 64 * 1024 * 1024
"""The longest message of a server, in bytes."""

_INHERITED = (
    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR",
    "TEMP", "TMP", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy",
    "https_proxy", "no_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "NVM_DIR", "VOLTA_HOME", "UV_CACHE_DIR",
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE",
)  # fmt: skip
_INHERITED_PREFIXES = ("LC_", "XDG_")
_LOGIN = re.compile(r"//[^/@\s]+@")
"""A login in an address, as proxies have it."""

_EXIT_CODE = 0.3
_FROM_OUTSIDE = tuple(
    number
    for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
    if (number := getattr(signal, name, None)) is not None
)
_GRACE = 0.5
_TERM_GRACE = 1.0
_STEP = 0.02
_WORDS_AT_MOST = 20

_log = logging.getLogger(__name__)


class StartError(ToolfoldError):
    """A server's process could not be started."""


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a server's process: the harmless ones of ours, and its own.

    What else is in our environment stays here, so that no server reads another's secrets: a
    package manager's settings hold tokens, and a proxy's address may hold a login. A server that
    needs one is given it by name, in its `env`.
    """
    inherited = {
        key: value
        for key, value in os.environ.items()
        if (key in _INHERITED or key.startswith(_INHERITED_PREFIXES))
        # A shell function exported by bash can be run by a child that is a shell.
        and not value.startswith("()")
        and not _LOGIN.search(value)
    }
    return {**inherited, **own}


class Child:
    """One running process of a server."""

    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self.process = process
        self._words: deque[str] = deque(maxlen=_WORDS_AT_MOST)
        self._listener: Callable[[str], None] | None = None
        self._reading = asyncio.create_task(self._read_errors())

    @property
    def last_words(self) -> str:
        """The last line that it wrote to its standard error, where that may be why it ended."""
        was_killed = -(self.process.returncode or 0) in _FROM_OUTSIDE
        return self._words[-1] if self._words and not was_killed else ""

    def listen(self, listener: Callable[[str], None]) -> None:
        """Have a listener told every line of its standard error, from its first on."""
        for line in self._words:
            listener(line)
        self._listener = listener

    @property
    def has_left(self) -> bool:
        """Whether the process itself is gone; its children may still hold its pipes."""
        return self.process.returncode is not None

    async def _read_errors(self) -> None:
        stream = self.process.stderr
        assert stream is not None
        log = logging.getLogger(f"toolfold.server.{self.name}")
        pace = Pace()
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # a line beyond the limit; what follows is read on
                continue
            if not line:
                return
            began = time.perf_counter()
            whole = line[:4_000].decode("utf-8", "replace")
            text = one_line(whole, 1000)
            if text:
                self._words.append(text)
                log.debug("%s", text)
                if self._listener is not None:
                    self._listener(whole)
            await pace.rest(time.perf_counter() - began)

    async def left(self) -> None:
        """Return when the process itself is gone."""
        # `wait` would wait for the pipes too, which a grandchild may hold for ever.
        while not self.has_left:  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    async def outcome(self) -> str:
        """Return how it ended, in words; its exit code may be a moment on its way."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_CODE):
                await self.left()
        code = self.process.returncode
        if code is None:
            return "ended"
        if code >= 0:
            return f"ended with {code}"
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
        return f"killed by signal {-code}"

    async def end(self) -> None:
        """End the process and everything that it started."""
        with contextlib.suppress(OSError, RuntimeError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        await self._gone_within(_GRACE)
        if self._signal(signal.SIGTERM) and not await self._gone_within(_TERM_GRACE):
            self._signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
            await self._gone_within(_TERM_GRACE)
        self._reading.cancel()
        # Pipes that a grandchild still holds would keep the transport open.
        transport = getattr(self.process, "_transport", None)
        if transport is not None:
            with contextlib.suppress(ProcessLookupError):
                transport.close()
        if not self._group_lives():
            process_groups.discard(self.process.pid)

    def kill(self) -> None:
        """End the whole group now, without waiting."""
        self._signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)

    async def _gone_within(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            if self.has_left and not self._group_lives():
                return True
            await asyncio.sleep(_STEP)
        return False

    def _group_lives(self) -> bool:
        return self._signal(0) if os.name == "posix" else not self.has_left

    def _signal(self, number: int) -> bool:
        """Send a signal to the group, and say whether there was one."""
        try:
            if os.name == "posix":
                os.killpg(self.process.pid, number)
            elif self.has_left:
                return False
            else:
                self.process.terminate()
        except (ProcessLookupError, PermissionError):
            return False
        return True


async def start(
    server: Server, *, through: Sequence[str] = (), descriptors: Collection[int] = ()
) -> Child:
    """Start a server's process.

    Args:
        server: How it is started.
        through: A program in front, which runs it: the server's own follows as its arguments.
        descriptors: What that program has open beside its standard ones.

    Raises:
        StartError: It cannot be started.
    """
    try:
        variables = environment(server.env)
        if through and shutil.which(server.command, path=variables.get("PATH")) is None:
            raise FileNotFoundError
        process = await asyncio.create_subprocess_exec(
            *through,
            server.command,
            *server.args,
            pass_fds=tuple(descriptors),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=variables,
            cwd=server.cwd or None,
            start_new_session=os.name == "posix",
            limit=LINE_LIMIT,
        )
    except FileNotFoundError:
        missing = _missing(server)
        raise StartError(f"{missing!r} is not there", hint="check the server's `command`") from None
    except (OSError, ValueError) as error:
        raise StartError(f"{server.command!r} cannot be started: {error}") from None
    process_groups.add(process.pid)
    _log.debug("server %s: process %d started", server.name, process.pid)
    return Child(server.name, process)


def _missing(server: Server) -> str:
    return server.cwd if server.cwd and not os.path.isdir(server.cwd) else server.command
