"""Access tokens of OAuth 2, had with client credentials: kept, and renewed before they end.

However many calls want one at once, the token server is asked once. It is asked at one
address and nowhere else: no redirect is followed, since the secret would go along. Neither
token nor secret stands in a log or an error, and what a token server says is shown without
them.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlencode

from toolfold._bounds import one_line
from toolfold._json_values import Json, is_mapping, parse_strict
from toolfold.prompts import http_calls
from toolfold.redact import MARK
from toolfold.sources.openapi._credentials import Credential
from toolfold.sources.openapi.client_credentials import ClientCredentials
from toolfold.sources.source import SourceError
from toolfold.tool import Tool

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

__all__ = ["AccessTokens", "NoTokenError"]

RENEWAL = 60.0
"""How long before its end a token is renewed, in seconds; of a short one, a fifth of its life."""

UNTOLD_LIFE = 3_600.0
"""How long a token is kept whose end the token server does not tell; a 401 ends it earlier."""

FRESH = 10.0
"""Seconds after which a token that an API refuses is renewed: one just had is what there is."""

_TIMEOUT = 30.0
_LIMIT = 64 * 1024
_SAID = 200


class NoTokenError(SourceError):
    """No access token could be had, so nothing was sent to the API."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="check `token_url`, `client_id` and `client_secret`")

    def for_model(self, tool: Tool) -> str:
        """Return what the model reads as the result of its call."""
        return http_calls.no_token(tool.shown_name, str(self))


@dataclass(frozen=True, slots=True, repr=False)
class _Token:
    value: str
    since: float
    until: float
    """When it is renewed."""


class AccessTokens:
    """The access token of one client at one token server.

    Args:
        client: What it is asked for with.
        url: Where.
        public_only: Whether the host must have a public address, since only a document names it.
        transport: What carries the requests, in place of the network.
        clock: Seconds that only ever grow.
    """

    def __init__(
        self,
        client: ClientCredentials,
        url: str,
        *,
        public_only: bool = False,
        transport: AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self._client = client
        self._public_only = public_only
        self._transport = transport
        self._clock = clock
        self._token: _Token | None = None
        self._former: str | None = None
        self._renewal: asyncio.Task[_Token] | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no result may show: the token, and the one before."""
        now = None if self._token is None else self._token.value
        return tuple(value for value in (now, self._former) if value)

    async def credential(self) -> Credential:
        """Return what signs a request now.

        Raises:
            NoTokenError: No token could be had.
        """
        token = self._token
        if token is None or self._clock() >= token.until:
            token = await self._renewed()
        return _credential(token)

    async def refused(self, credential: Credential) -> Credential | None:
        """Return what signs a request that an API refused; None where there is nothing else.

        Args:
            credential: What signed it.

        Raises:
            NoTokenError: No other token could be had.
        """
        token = self._token
        if token is not None and _credential(token) == credential:
            if self._clock() < token.since + FRESH:
                return None
            token = await self._renewed()
        new = await self.credential() if token is None else _credential(token)
        return None if new == credential else new

    async def aclose(self) -> None:
        """Ask for nothing more."""
        renewal, self._renewal = self._renewal, None
        if renewal is not None and not renewal.done():
            renewal.cancel()
            await asyncio.wait([renewal])

    async def _renewed(self) -> _Token:
        """Return a new token: the one that is being asked for, where somebody does already."""
        renewal, loop = self._renewal, asyncio.get_running_loop()
        if renewal is None or renewal.done() or renewal.get_loop() is not loop:
            renewal = self._renewal = loop.create_task(self._ask(), name="access token")
            # Whoever waited may be gone by then: an error that nobody hears is no news.
            renewal.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            # A call that is given up does not take the token from the others.
            return await asyncio.shield(renewal)
        except asyncio.CancelledError:
            if renewal.cancelled():
                raise NoTokenError("it is closing") from None
            raise

    async def _ask(self) -> _Token:
        began = self._clock()
        try:
            async with asyncio.timeout(_TIMEOUT):
                answer = await self._asked()
        except TimeoutError:
            raise NoTokenError("the token server did not answer in time") from None
        value, life = _read(answer, self._hidden)
        until = began + life - min(RENEWAL, life / 5)
        if self._token is not None and self._token.value != value:
            self._former = self._token.value
        self._token = _Token(value, self._clock(), until)
        return self._token

    async def _asked(self) -> tuple[int, bytes]:
        import httpx2

        from toolfold.sources.openapi._http_client import HttpClient
        from toolfold.sources.openapi._requests import HttpRequest

        client = self._client
        form = {"grant_type": "client_credentials", **client.parameters}
        if client.scopes:
            form["scope"] = " ".join(client.scopes)
        signed: list[Credential] = []
        if client.send == "header":
            # OAuth has both encoded as in a form before they become user and password.
            pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
            value = f"Basic {b64encode(pair.encode()).decode()}"
            signed.append(Credential("header", "Authorization", value))
        else:
            form |= {"client_id": client.client_id, "client_secret": client.client_secret}
        headers = {
            "accept": "application/json",
            "content-type": "application/x-www-form-urlencoded",
        }
        request = HttpRequest("POST", self.url, headers, urlencode(form).encode())
        http = HttpClient(
            self.url,
            headers={},
            timeout=_TIMEOUT,
            limit=_LIMIT,
            public_only=self._public_only,
            redirects=False,
            transport=self._transport,
        )
        try:
            answer = await http.send(request, signed)
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL):
            raise NoTokenError("the token server cannot be reached") from None
        finally:
            await http.aclose()
        return answer.status, answer.content

    def _hidden(self, text: str) -> str:
        for secret in (self._client.client_secret, quote_plus(self._client.client_secret)):
            text = text.replace(secret, MARK)
        return one_line(text, _SAID)


def _credential(token: _Token) -> Credential:
    return Credential("header", "Authorization", f"Bearer {token.value}")


def _read(answer: tuple[int, bytes], hidden: Callable[[str], str]) -> tuple[str, float]:
    """Return the token that a token server gave, and for how many seconds it is good."""
    status, content = answer
    given: Mapping[str, Json] = {}
    try:
        value = parse_strict(content)
        given = value if is_mapping(value) else {}
    except (ValueError, RecursionError):
        pass
    if status != 200:
        said = [
            hidden(v) for k in ("error", "error_description") if isinstance(v := given.get(k), str)
        ]
        raise NoTokenError(": ".join((f"the token server answers {status}", *said)))
    token, kind, life = given.get("access_token"), given.get("token_type"), given.get("expires_in")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        raise NoTokenError("the token server answers without a token")
    if isinstance(kind, str) and kind.lower() != "bearer":
        raise NoTokenError(f"the token server gives a token of the kind {hidden(kind)!r}")
    if isinstance(life, str) and life.isdecimal():
        life = float(life[:12])
    if isinstance(life, bool) or not isinstance(life, int | float) or not life > 0:
        life = UNTOLD_LIFE
    return token, min(float(life), 86_400.0 * 365)
