"""Servers, read from the `mcpServers` that everybody has.

An error names the server, the key, the line and the fix; it never shows a value that came
out of a reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from toolfold.config.env_file import parse_env_file
from toolfold.config.references import ReferenceProblem, References
from toolfold.config.server_entries import OAUTH_KEYS, OUR_KEYS, ServerEntry, plain
from toolfold.errors import ConfigError, MissingExtraError
from toolfold.redact import redact
from toolfold.settings._nearness import nearly
from toolfold.settings.block import checked
from toolfold.settings.check import suggestion
from toolfold.settings.declared import declared
from toolfold.settings.file import Given, Place
from toolfold.sources.mcp.server import LONGEST_START, Server, Transport
from toolfold.tool import Json, is_array, is_object

__all__ = ["Read", "read_servers"]

_PLAIN = ("oauth", "lazy", "run", "per_session", "handshake", "allow", "deny")
_OAUTH = ("oauth_client_id", "oauth_client_secret")
_PREFIX = re.compile(r"(?:[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*)?")


class Read(NamedTuple):
    """What was made of the entries."""

    servers: tuple[Server, ...]
    disabled: tuple[str, ...]
    notes: tuple[str, ...]
    """What a person may want to know of entries that can be used all the same."""


def read_servers(
    block: Place,
    references: References,
    *,
    strict: bool,
    key: str = "mcpServers",
    is_own: bool = False,
) -> Read:
    """Return the servers of a block `mcpServers`.

    Args:
        block: The block.
        references: What resolves `${…}`.
        strict: Whether an entry that cannot be used is an error; else it is a server that
            says so.
        key: The block's name, for errors.
        is_own: Whether the file is ours. There a key that nobody knows is an error of its
            server; in another program's file only one that is nearly ours is, and the rest
            is noted.

    Raises:
        ConfigError: The block is no mapping; with `strict`, also what is wrong in it.
    """
    servers: list[Server] = []
    disabled: list[str] = []
    notes: list[str] = []
    for name, place in block.pairs(f"`{key}`").items():
        try:
            server = _read_server(name, place, references, notes, key, is_own=is_own)
        except ConfigError as error:
            if strict:
                raise
            server = Server(name, "stdio", problem=error)
        if server is None:
            disabled.append(name)
        else:
            servers.append(server)
    for place, server in enumerate(servers):
        problem = _taken_prefix(server, servers, block, key)
        if problem is not None and strict:
            raise problem
        servers[place] = server if problem is None else replace(server, problem=problem)
    return Read(tuple(servers), tuple(disabled), tuple(notes))


def _taken_prefix(
    server: Server, servers: Sequence[Server], block: Place, key: str
) -> ConfigError | None:
    """Return what is wrong where a server's tools would be named like another's."""
    other = next(
        (
            other
            for other in servers
            if server.prefix and other is not server and server.prefix in (other.name, other.prefix)
        ),
        None,
    )
    if other is None:
        return None
    return ConfigError(
        f"`{key}.{server.name}.prefix` is {server.prefix!r}{block.where}, "
        f"which stands before the tools of {other.name!r}",
        hint="give each a prefix of its own",
    )


def _read_server(
    name: str, place: Place, references: References, notes: list[str], key: str, *, is_own: bool
) -> Server | None:
    """Return the server of one entry, or None where it is disabled."""
    pairs = place.pairs(f"`{key}.{name}`")
    if not name.strip():
        raise ConfigError(f"a server has no name{place.where}", hint="give it one")
    entry = plain({k: inner.value for k, inner in pairs.items()})
    reader = _Reader(f"{key}.{name}", place, pairs, entry, references)
    try:
        return reader.server(name, is_own=is_own)
    finally:
        notes += reader.notes


class _Reader:
    """Turns one entry into a server, and says where it cannot."""

    def __init__(
        self,
        prefix: str,
        place: Place,
        pairs: Mapping[str, Place],
        entry: ServerEntry,
        references: References,
    ) -> None:
        self._prefix = prefix
        self._place = place
        self._pairs = pairs
        self._entry = entry
        self._values = entry.values
        self._references = references
        self._hidden: list[str] = []
        self.notes: list[str] = []

    def server(self, name: str, *, is_own: bool) -> Server | None:
        """Return the server, or None where it is disabled."""
        if self._own("disabled"):
            return None
        self._look_at_unknown(is_own=is_own)
        transport = self._transport()
        self._check_run(transport)
        common: dict[str, Any] = {
            "name": name,
            "transport": transport,
            "start_timeout": self._start_timeout(),
            "call_timeout": self._own("call_timeout") if self._is_bounded else None,
            "prefix": self._name_prefix(),
            **{key: self._own(key) for key in _PLAIN},
        }
        if transport == "stdio":
            cwd = self._values.get("cwd")
            own: dict[str, Any] = {
                "command": self._home(self._text("command", self._values["command"])),
                "args": self._arguments(),
                "env": MappingProxyType(self._from_env_file() | self._mapping("env")),
                "cwd": None if cwd is None else self._home(self._text("cwd", cwd)),
            }
        else:
            own = {
                "url": self._url(),
                "headers": MappingProxyType(self._mapping("headers")),
                "oauth_port": self._own("oauth_port"),
                **{
                    key: self._text(key, self._values[key]) for key in _OAUTH if key in self._values
                },
            }
        return Server(**common, **own, hidden=tuple(dict.fromkeys(self._hidden)))

    def _look_at_unknown(self, *, is_own: bool) -> None:
        for key in self._entry.unknown:
            what = f"unknown key `{self._prefix}.{key}`{self._pairs[key].where}"
            self._judge_unknown(key, OUR_KEYS, what, is_own=is_own)
        for key in self._entry.unknown_oauth:
            what = f"unknown key `{self._prefix}.oauth.{key}`{self._pairs['oauth'].where}"
            self._judge_unknown(key, OAUTH_KEYS, what, is_own=is_own)

    def _judge_unknown(self, key: str, known: Sequence[str], what: str, *, is_own: bool) -> None:
        if meant := nearly(key, known):
            raise ConfigError(what, hint=f"did you mean `{meant}`?")
        if is_own:
            raise ConfigError(what, hint=suggestion(key, list(known)))
        self.notes.append(f"{what} is passed over")

    @property
    def _is_bounded(self) -> bool:
        # Written out, `null` and 0 mean that a call may take for ever.
        written = self._pairs.get("call_timeout")
        return written is None or written.value not in (None, 0)

    def _start_timeout(self) -> float:
        seconds = self._own("timeout")
        if seconds <= LONGEST_START:
            return seconds
        self.notes.append(
            f"`{self._prefix}.timeout`{self._where('timeout')} is read as milliseconds"
        )
        return seconds / 1000

    def _check_run(self, transport: Transport) -> None:
        if self._own("run") == "each":
            return
        if transport != "stdio":
            hint = "take `run` out: a server at an address is not started here"
            self._refuse("run", "is 'once'", hint)
        if self._own("per_session"):
            hint = "take one of the two out"
            self._refuse("run", "is 'once', and `per_session` gives each session one", hint)

    def _name_prefix(self) -> str | None:
        prefix = self._own("prefix")
        if prefix is not None and not _PREFIX.fullmatch(prefix):
            hint = 'write letters, digits, `-` and single `_` between them, or ""'
            self._refuse("prefix", f"is {prefix!r}", hint)
        return prefix

    def _transport(self) -> Transport:
        kind, has_command = self._values.get("type"), self._values.get("command") is not None
        has_url = self._values.get("url") is not None
        if kind is None:
            if not has_command and not has_url:
                self._refuse(None, "has neither `command` nor `url`", "give it one of them")
            return "stdio" if has_command else self._guess()
        if kind not in ("stdio", "http", "sse"):
            self._refuse("type", f"is {kind!r}", "write stdio, http or sse")
        missing = "command" if kind == "stdio" else "url"
        if self._values.get(missing) is None:
            self._refuse("type", f"is {kind!r}, and there is no `{missing}`", f"give `{missing}`")
        return kind

    def _guess(self) -> Transport:
        url = self._values["url"]
        path = url.partition("?")[0].rstrip("/") if isinstance(url, str) else ""
        return "sse" if path.endswith("/sse") else "http"

    def _url(self) -> str:
        written = self._values["url"]
        url = self._text("url", written)
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_usable = False
        if not is_usable:
            self._refuse(
                "url", f"is {redact(str(written))!r}", "write an address with http:// or https://"
            )
        return url

    def _arguments(self) -> tuple[str, ...]:
        given = self._values.get("args", [])
        if not is_array(given):
            self._refuse("args", "is no list", 'write ["one", "two"]')
        return tuple(self._text("args", item, str(i)) for i, item in enumerate(given))

    def _mapping(self, key: str) -> dict[str, str]:
        given = self._values.get(key, {})
        if not is_object(given):
            self._refuse(key, "is no mapping", 'write {"NAME": "value"}')
        found = {
            str(name): self._text(key, value, str(name))
            for name, value in given.items()
            if value is not None
        }
        for name, value in found.items() if key == "headers" else ():
            if not value.isprintable():
                hint = "leave line breaks and control characters out"
                self._refuse(key, "cannot be sent", hint, name)
        return found

    def _from_env_file(self) -> dict[str, str]:
        given = self._values.get("env_file")
        if given is None:
            return {}
        path = self._references.path(self._text("env_file", given))
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            self._refuse("env_file", f"names {given!r}, which cannot be read", "check the path")
        try:
            read = parse_env_file(text)
        except ImportError:
            extra = MissingExtraError("an `envFile`", "mcp")
            self._refuse("env_file", "needs the `mcp` extra", extra.hint or "")
        if "\0" in text:
            self._refuse("env_file", f"names {given!r}, which holds a zero byte", "take it out")
        if read.unreadable:
            lines = ", ".join(map(str, read.unreadable[:8]))
            key = f"`{self._prefix}.{self._entry.written('env_file')}`{self._where('env_file')}"
            self.notes.append(f"{key}: line {lines} of {given!r} is no `NAME=value`; passed over")
        self._hidden += read.variables.values()
        return read.variables

    def _text(self, key: str, value: Json, step: str | None = None) -> str:
        """Return a text of the entry with its references resolved."""
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, int | float):
            value = str(value)
        if not isinstance(value, str) or "\0" in value:
            self._refuse(key, "is no text", "write a text in quotes", step)
        try:
            text, secrets = self._references.resolve(value)
        except ReferenceProblem as problem:
            self._refuse(key, str(problem), problem.hint, step)
        self._hidden += secrets
        return text

    def _home(self, text: str) -> str:
        return str(self._references.path(text)) if text.startswith("~") else text

    def _own(self, key: str) -> Any:
        if key not in self._values:
            return declared(Server)[key].default
        given = Given(self._values[key], self._where(key))
        return checked(Server, key, given, f"{self._prefix}.")

    def _where(self, key: str | None) -> str:
        written = self._pairs.get(self._entry.written(key)) if key else None
        return written.where if written else self._place.where

    def _refuse(self, key: str | None, clause: str, hint: str, step: str | None = None) -> NoReturn:
        steps = [
            self._prefix,
            *([self._entry.written(key)] if key else []),
            *([step] if step else []),
        ]
        raise ConfigError(f"`{'.'.join(steps)}`{self._where(key)} {clause}", hint=hint)
