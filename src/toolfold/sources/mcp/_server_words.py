"""What a server says beside the protocol, as a person may read it: never a secret in it.

A server's last lines on standard error are kept over its restarts, within a bound; what it
prints on standard output and is no message is counted, and told a few times. All of it is
redacted before it is cut, since a part of a secret is not known for one.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from mcp.shared.exceptions import MCPError

from toolfold._bounds import one_line
from toolfold.redact import Redactor
from toolfold.sources.mcp._server_errors import ServerDownError, SignInError
from toolfold.sources.mcp._tasks import leaf

if TYPE_CHECKING:
    from toolfold.sources.mcp.server import Server

__all__ = ["ServerLine", "ServerWords"]

LINES_AT_MOST = 200
"""How many lines of a server are kept."""

CHARACTERS_AT_MOST = 64 * 1024
"""How long they may be together."""

_LINE_LIMIT = 1_000
_LOOKED_AT = 4_000
_RUBBISH_TOLD = 100
_RUBBISH_SHOWN = 200

_log = logging.getLogger(__name__)


class ServerLine(NamedTuple):
    """A line that a server wrote to its standard error."""

    at: float
    """When it came, in seconds since 1970."""

    text: str
    """The line, its secrets taken out."""


class ServerWords:
    """What one server says, and what is said of it.

    Args:
        server: The server; its secrets are taken out.
    """

    def __init__(self, server: Server) -> None:
        self._name = server.name
        self._redactor = Redactor(server.secrets)
        self._lines: deque[ServerLine] = deque(maxlen=LINES_AT_MOST)
        self._characters = 0
        self.rubbish = 0
        """How many lines it printed that are no messages."""
        self.last = ""
        """What it said last, of why it is not there."""
        self.refusal: int | None = None
        """The status with which a server over HTTP refused."""

    @property
    def lines(self) -> tuple[ServerLine, ...]:
        """The last lines of its standard error, the oldest first."""
        return tuple(self._lines)

    def shown(self, text: str) -> str:
        """Return a text as a person may see it, in one line."""
        return one_line(self._redactor.redact(text[:_LOOKED_AT]), 300)

    def heard(self, text: str) -> None:
        """Keep a line of its standard error."""
        line = one_line(self._redactor.redact(text[:_LOOKED_AT]), _LINE_LIMIT)
        if len(self._lines) == LINES_AT_MOST:
            self._characters -= len(self._lines.popleft().text)
        self._lines.append(ServerLine(time.time(), line))
        self._characters += len(line)
        while self._characters > CHARACTERS_AT_MOST:
            self._characters -= len(self._lines.popleft().text)

    def refused(self, status: int) -> None:
        """Take note of the status with which it refused."""
        self.refusal = status

    def printed(self, line: bytes) -> None:
        """Count a line of its standard output that is no message, and tell of the first ones."""
        self.rubbish += 1
        if self.rubbish > _RUBBISH_TOLD:
            return
        text = self._redactor.redact(one_line(line[:2000].decode("utf-8", "replace"), 1000))
        if self.rubbish == 1:
            _log.warning(
                "server %s prints on its standard output what is no message; it is passed over. "
                "It begins: %s", self._name, text[:_RUBBISH_SHOWN],
            )  # fmt: skip
        else:
            _log.debug("server %s printed: %s", self._name, text[:_RUBBISH_SHOWN])

    def explained(self, error: BaseException, patience: float, *, was_ready: bool) -> str:
        """Return why it is not there; what it says of that itself goes to its last words.

        Args:
            error: What was raised.
            patience: How many seconds it had to start.
            was_ready: Whether it had been there before.
        """
        error = leaf(error)
        if isinstance(error, TimeoutError):
            text = f"did not answer within {patience:g} s"
        elif isinstance(error, ServerDownError):
            text = error.reason
        elif isinstance(error, MCPError):
            text = f"answered with the error {error.error.code}"
            self.last = str(error)
        else:
            text = str(error) or type(error).__name__
        is_sign_in = isinstance(error, SignInError)
        if type(error).__module__.startswith("mcp.client.auth"):
            # What its library says of a flow that came to nothing.
            is_sign_in, text = True, f"did not let us sign in: {text}"
        if was_ready or is_sign_in:
            pass  # what was refused before has been got over, or was the question
        elif self.refusal in (401, 403):
            self.last = ""
            text = f"refuses us (HTTP {self.refusal}): check its `headers`, or set `oauth: true`"
        elif self.refusal is not None:
            text = f"{text} (HTTP {self.refusal})"
        return text
