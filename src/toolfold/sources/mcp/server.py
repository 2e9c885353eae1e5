"""One server behind the gateway.

A `Server` that exists can be started, unless it says why it cannot (`problem`): one bad
entry must not take the others with it. What must not be seen, it does not show: its `repr`
holds no value that came out of a reference or looks like a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolfold.errors import ConfigError
from toolfold.redact import MARK, redact
from toolfold.settings.declared import setting
from toolfold.settings.frozen import FrozenMapping
from toolfold.sources.mcp._secret_values import (
    is_secret_argument,
    is_secret_header,
    is_secret_value,
)

__all__ = ["LONGEST_START", "Server", "Transport"]

Transport: TypeAlias = Literal["stdio", "http", "sse"]
"""How a server is reached."""

LONGEST_START = 600.0
"""The longest start of a server, in seconds. A greater `timeout` is in milliseconds."""

_NOTHING: Mapping[str, str] = FrozenMapping[str]()


@dataclass(frozen=True, slots=True, repr=False)
class Server:
    """One MCP server: how it is reached, and how far it is trusted with time and tools.

    Its settings are declared here, under the keys that a file has for them.
    """

    name: str
    """Its name in the configuration; the source of its tools."""

    transport: Transport = setting(
        "stdio",
        "`stdio`, `http` or `sse`. Without it, `command` is `stdio`, an address that ends in "
        "`/sse` is `sse`, any other `http`.",
        key="type",
        also=("transport", "transportType"),
    )
    command: str = setting(
        "",
        "The program of a server that is started here; a list holds program and arguments.",
        also=("cmd",),
    )
    args: tuple[str, ...] = setting((), "Its arguments.")
    env: Mapping[str, str] = setting(
        _NOTHING, "Variables of its environment.", also=("environment", "envs")
    )
    cwd: str | None = setting(
        None, "The folder it works in.", also=("workingDirectory", "working_directory")
    )
    url: str = setting(
        "",
        "The address of a server that is elsewhere.",
        also=("serverUrl", "server_url", "httpUrl", "uri"),
    )
    headers: Mapping[str, str] = setting(
        _NOTHING, "Headers of every request to it.", also=("http_headers",)
    )
    start_timeout: float = setting(
        30.0,
        "Seconds until it must have started and listed its tools. Above 600 it is read as "
        "milliseconds, which is what some clients mean by it.",
        low=0.1,
        high=LONGEST_START * 1000,
        key="timeout",
        also=("startup_timeout_sec",),
    )
    call_timeout: float | None = setting(
        300.0,
        "Seconds until a call must be answered; null or 0 waits for ever.",
        low=0.1,
        high=86_400,
        also=("tool_timeout_sec",),
    )
    lazy: bool | None = setting(
        None, "Whether it is started at its first call, in place of what `serve.lazy` says."
    )
    run: Literal["each", "once"] = setting(
        "each",
        "Where replicas share a store: whether each of them runs a server with a `command`, or one "
        "does for all (`once`), as it must where the server keeps a file, a browser or a licence "
        "to itself. Without a shared store both mean the same.",
    )
    per_session: bool = setting(False, "Whether every client's session has a server of its own.")
    handshake: bool = setting(
        False,
        "Whether to keep to the revisions before 2026-07-28, for a server that asks its "
        "questions only there.",
    )
    prefix: str | None = setting(
        None,
        "What stands before its tools' and prompts' own names, with `__` between, in place of "
        "its name. Empty, nothing does: they keep their own names, but for those that hold "
        "`__`, that clients do not take, or that an earlier server or the bridge has; a name "
        "that was shown already stays where it is when an earlier server comes late. Patterns "
        "in `allow` and `deny` still go by the server's name.",
    )
    allow: tuple[str, ...] = setting(
        ("*",),
        "Patterns over its tools' own names; the others do not exist.",
        also=("includeTools", "enabled_tools", "available_tools", "tools"),
    )
    deny: tuple[str, ...] = setting(
        (),
        "Patterns of tools that do not exist; they win over `allow`.",
        also=("excludeTools", "disabledTools", "disabled_tools"),
    )
    oauth: bool = setting(False, "Whether to sign in with OAuth, over HTTP.")
    oauth_client_id: str = setting(
        "",
        "The id of a client of your own at the server's authorization server, in place of one "
        "that is registered for you; `oauth` is then true. `oauth: {client_id: …}` says the same.",
        also=("oauthClientId",),
    )
    oauth_client_secret: str = setting(
        "", "That client's secret, where it has one; write it as a reference (`${NAME}`)."
    )
    oauth_port: int = setting(
        0,
        "The port that the browser comes back to, at `http://127.0.0.1:PORT/callback`: the address "
        "that your own client was registered with. 0 takes a free one, and keeps it.",
        low=0,
        high=65_535,
    )
    disabled: bool = setting(False, "Whether to leave the server out.")
    problem: ConfigError | None = field(default=None, compare=False)
    """Why it cannot be started, where that is known already."""

    hidden: tuple[str, ...] = ()
    """What came out of references and must not be shown."""

    def __repr__(self) -> str:
        return f"Server({self.name!r}, {self.transport!r}, {self.shown!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must never be shown, for a `Redactor`."""
        found = dict.fromkeys((*self.hidden, self.oauth_client_secret))
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
