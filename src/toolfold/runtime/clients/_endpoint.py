"""One address to which JSON is posted and from which a reply comes back in pieces.

One attempt, no retries: whatever goes wrong is a `Failure` that says whether another may
help. The connection is closed as soon as nobody reads any more, so that a server stops
working on what nobody waits for. Everything that is read has a bound.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from toolfold._json_values import sendable
from toolfold.errors import ConfigError, MissingExtraError
from toolfold.redact import is_secret_name, redact
from toolfold.runtime.clients._failure import Failure, answered
from toolfold.runtime.clients._sse import EventReader, EventTooLongError, ServerSentEvent
from toolfold.tool import Json

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "Endpoint",
    "Piece",
    "PieceReader",
    "Whole",
    "address",
    "header_value",
    "secrets_in",
]

CONNECT_SECONDS = 10.0
KEEP_SECONDS = 30.0
"""How long an idle connection waits for the next request."""

REPLY_LIMIT = 64 * 1024 * 1024
"""How many bytes a reply may have."""

EVENT_LIMIT = 8 * 1024 * 1024
"""How many bytes one event of it may have."""

_ERROR_LIMIT = 64 * 1024
_CONNECTIONS = 1_000
_KEPT_CONNECTIONS = 100


class Whole(NamedTuple):
    """A reply that came in one piece."""

    value: Json


Piece: TypeAlias = ServerSentEvent | Whole
"""What a reply comes in."""


class Endpoint:
    """Posts to one URL.

    Args:
        url: Where to.
        headers: What to send along; keys too.
        timeout: How many seconds the server may be silent.
        needs: Who needs the extra, for the error where it is missing.
        key_hint: What to do where the key is missing or wrong.

    Raises:
        MissingExtraError: The `agent` extra is not installed.
    """

    def __init__(
        self, url: str, headers: Mapping[str, str], *, timeout: float, needs: str, key_hint: str
    ) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtraError(needs, "agent") from None
        self.url = url
        self._http = httpx2
        self._headers = {
            "content-type": "application/json",
            "user-agent": "toolfold",
            **{name.lower(): value for name, value in headers.items()},
        }
        self._timeout = timeout
        self._key_hint = key_hint
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def place(self) -> str:
        """The address as a person may see it: without its query."""
        return urlunsplit((*urlsplit(self.url)[:3], "", ""))

    @property
    def host(self) -> str:
        """The host's name, in lower case."""
        return urlsplit(self.url).hostname or ""

    async def aclose(self) -> None:
        """Close the connections. A later post opens new ones."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    async def post(
        self, body: Json, headers: Mapping[str, str] = MappingProxyType({})
    ) -> AsyncGenerator[Piece, None]:
        """Post a body and yield what the reply comes in.

        Args:
            body: What to post.
            headers: What to send along this time; a header that is sent anyway gets more values.

        Raises:
            Failure: There is no reply, or it breaks off.
        """
        size = 0
        reader = PieceReader()
        async with aclosing(self._bytes(sendable(body), headers)) as stream:
            async for data in stream:
                size += len(data)
                if size > REPLY_LIMIT:
                    raise Failure(
                        f"the reply is longer than {REPLY_LIMIT:,} bytes",
                        hint="ask for less, or lower the limit on the reply's tokens",
                    )
                for piece in reader.feed(data):
                    yield piece
        if not size:
            raise Failure("the server sent nothing", hint="try again", again=True)
        for piece in reader.close():
            yield piece

    async def _bytes(self, body: bytes, headers: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of one reply."""
        http = self._http
        own = {name.lower(): value for name, value in headers.items()}
        sent = {name: ",".join(filter(None, (self._headers.get(name), own[name]))) for name in own}
        begun = False
        try:
            client = self._opened()
            async with client.stream("POST", self.url, content=body, headers=sent) as response:
                if not response.is_success:
                    raise await self._refusal(response)
                async for data in response.aiter_bytes():
                    begun = True
                    yield data
        except http.TransportError as error:
            raise self._broken(error, begun=begun) from None
        except http.DecodingError:
            raise Failure("the reply is compressed in a way that cannot be read") from None

    def _opened(self) -> httpx2.AsyncClient:
        """Return the connections of the loop that runs: another loop's cannot be used here."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            http = self._http
            self._loop = loop
            self._client = http.AsyncClient(
                headers=self._headers,
                timeout=http.Timeout(self._timeout, connect=min(CONNECT_SECONDS, self._timeout)),
                limits=http.Limits(
                    max_connections=_CONNECTIONS,
                    max_keepalive_connections=_KEPT_CONNECTIONS,
                    keepalive_expiry=KEEP_SECONDS,
                ),
            )
        return self._client

    async def _refusal(self, response: httpx2.Response) -> Failure:
        read = b""
        async for data in response.aiter_bytes():
            read += data
            if len(read) > _ERROR_LIMIT:
                break
        text = read[:_ERROR_LIMIT].decode("utf-8", "replace")
        headers = {name.lower(): value for name, value in response.headers.items()}
        return answered(response.status_code, headers, text, self._key_hint)

    def _broken(self, error: httpx2.TransportError, *, begun: bool) -> Failure:
        http = self._http
        if isinstance(error, http.ReadTimeout):
            # It may still be at work: another attempt would only add to what it has to do.
            return Failure(
                f"the server was silent for {self._timeout:g} s", hint="give it more time"
            )
        reason = redact(str(error)) or type(error).__name__
        if begun:
            return Failure(f"the reply broke off: {reason!r}", hint="try again")
        if isinstance(error, http.LocalProtocolError | http.UnsupportedProtocol):
            return Failure("the request cannot be sent", hint="check the base URL and the headers")
        return Failure(
            f"cannot reach {self.place!r}: {reason!r}",
            hint="check that the server runs, and the base URL",
            again=True,
        )


class PieceReader:
    """Turns the bytes of a reply into events, or into one value where it is plain JSON.

    Servers that do not stream answer with one JSON object, whatever was asked for and
    whatever their headers say; no event begins with a brace.
    """

    def __init__(self) -> None:
        self._events = EventReader(EVENT_LIMIT)
        self._whole: list[bytes] | None = None
        self._is_begun = False

    def feed(self, data: bytes) -> list[Piece]:
        """Return the pieces that these bytes complete."""
        if not self._is_begun:
            data = data.lstrip()
            self._is_begun = bool(data)
            self._whole = [] if data.startswith((b"{", b"[")) else None
        if self._whole is not None:
            self._whole.append(data)
            return []
        try:
            return [*self._events.feed(data)]
        except EventTooLongError:
            raise Failure(f"an event of the reply is longer than {EVENT_LIMIT:,} bytes") from None

    def close(self) -> list[Piece]:
        """Return the piece that the end of the reply completes, if there is one."""
        if self._whole is None:
            return [*self._events.close()]
        try:
            return [Whole(json.loads(b"".join(self._whole)))]
        except (ValueError, RecursionError):
            raise Failure("the reply is not JSON, or broke off", hint="try again") from None


def address(base_url: str, path: str) -> str:
    """Return the URL of a path below a base URL; a query in it stays.

    Raises:
        ConfigError: The base URL cannot be used.
    """
    hint = "write it as 'https://host/v1'"
    try:
        parts = urlsplit(base_url.strip())
        fits = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        raise ConfigError(f"the base URL {redact(base_url)!r} is none", hint=hint) from None
    if not fits:
        raise ConfigError(f"the base URL {redact(base_url)!r} is not http or https", hint=hint)
    if parts.username or parts.password:
        raise ConfigError(
            f"the base URL of {parts.hostname!r} holds a user or password",
            hint="leave them out of it, and give a key instead",
        )
    base = parts.path.rstrip("/")
    # People paste the address with a part of the path, or all of it.
    ends = [i for i in range(len(path), 0, -1) if path[i : i + 1] in ("", "/")]
    there = next((i for i in ends if base.endswith(path[:i])), 0)
    return urlunsplit((parts.scheme, parts.netloc, base + path[there:], parts.query, ""))


def header_value(value: str, what: str) -> str:
    """Return a value that can go into a header.

    Raises:
        ConfigError: It holds something that a header cannot; what, is not told.
    """
    stripped = value.strip()
    if not (stripped.isascii() and stripped.isprintable()):
        raise ConfigError(
            f"{what} holds a character that cannot be sent",
            hint="copy it again, without line breaks or quotes",
        )
    return stripped


def secrets_in(headers: Mapping[str, str]) -> list[str]:
    """Return the secrets among headers: values under such names, without their scheme."""
    secret = [value for name, value in headers.items() if is_secret_name(name)]
    return [*secret, *(value.split()[-1] for value in secret if value)]
