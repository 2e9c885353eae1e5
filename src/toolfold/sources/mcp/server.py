"""One server behind the gateway.

A `Server` that exists can be started, unless it says why it cannot (`problem`): one bad
entry must not take the others with it. What must not be seen, it does not show: its `repr`
holds no value that came out of a reference or looks like a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from toolfold.errors import ConfigError
from toolfold.redact import MARK, redact
from toolfold.sources.mcp.secret_values import is_secret_argument, is_secret_header, is_secret_value

__all__ = ["Server", "Transport"]

Transport: TypeAlias = Literal["stdio", "http", "sse"]
"""How a server is reached."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, repr=False)
class Server:
    """One MCP server: how it is reached, and how far it is trusted with time and tools."""

    name: str
    """Its name in the configuration; the source of its tools."""

    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    oauth: bool = False
    """Whether to sign in with OAuth."""

    start_timeout: float = 30.0
    """Seconds until it must have started and listed its tools."""

    call_timeout: float | None = 300.0
    """Seconds until a call must be answered; None waits for ever."""

    lazy: bool | None = None
    """Whether it is started at its first call; None is what `serve.lazy` says."""

    per_session: bool = False
    """Whether every client's session has one of its own."""

    handshake: bool = False
    """Whether to keep to the revisions before 2026-07-28."""

    allow: tuple[str, ...] = ("*",)
    """Patterns over its own tools' names, of which one must match."""

    deny: tuple[str, ...] = ()
    """Patterns of which none may match."""

    problem: ConfigError | None = field(default=None, compare=False)
    """Why it cannot be started, where that is known already."""

    hidden: tuple[str, ...] = ()
    """What came out of references and must not be shown."""

    def __repr__(self) -> str:
        return f"Server({self.name!r}, {self.transport!r}, {self.shown!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must never be shown, for a `Redactor`."""
        found = dict.fromkeys(self.hidden)
        for name, value in self.env.items():
            if is_secret_value(name, value):
                found[value] = None
        for name, value in self.headers.items():
            if is_secret_header(name, value):
                found[value] = None
                # Behind `Bearer`, the token is a secret by itself.
                found[value.rpartition(" ")[2]] = None
        for place in range(len(self.args)):
            if is_secret_argument(self.args, place):
                flag, equals, value = self.args[place].partition("=")
                found[value if equals and flag.startswith("-") else self.args[place]] = None
        return tuple(value for value in found if value)

    @property
    def shown(self) -> str:
        """Its command or address as a person may see it, with a mark for each secret."""
        text = " ".join((self.command, *self.args)) if self.transport == "stdio" else self.url
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, MARK)
        return redact(text)
