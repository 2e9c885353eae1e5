"""Requests to one API: signed, to its own host alone, answered within bounds.

Credentials are put in below the HTTP library's own client, so that no log and no error of
its shows them, and only where the request goes to the API's own origin. A redirect is
followed where it stays there and repeats nothing. Cookies that an API sets are not kept:
calls of different people share this client.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from urllib.parse import urljoin
from urllib.request import getproxies, proxy_bypass

import httpx2

from toolfold.sources._packed_bodies import ENCODINGS, UnpackedBody, encodings_of
from toolfold.sources.openapi._credentials import Credential
from toolfold.sources.openapi._requests import HttpRequest
from toolfold.sources.openapi._servers import is_global, origin_of
from toolfold.sources.openapi._styles import encoded

__all__ = ["HttpAnswer", "HttpClient", "NotPublicError"]

_REDIRECTS = 5
_CONNECT_TIMEOUT = 30.0
_SIGNATURE = "toolfold.credentials"


class NotPublicError(httpx2.ConnectError):
    """A document's server is not where everybody can reach it."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes
    is_cut: bool
    """Whether there was more than is read."""

    leads_to: str | None = None
    """The host that a redirect leads to, where it is not followed; empty where nobody knows."""


class HttpClient:
    """Sends requests to one origin.

    Args:
        base: An address there.
        headers: Headers of every request.
        timeout: Seconds until an answer must have come.
        limit: Bytes of an answer that are read.
        public_only: Whether its host must have a public address, since only a document names it.
        redirects: Whether those within the origin are followed.
        transport: What carries the requests, in place of the network; whoever made it closes it.
    """

    def __init__(
        self,
        base: str,
        *,
        headers: Mapping[str, str],
        timeout: float,
        limit: int,
        public_only: bool = False,
        redirects: bool = True,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._origin = origin_of(base)
        self._redirects = _REDIRECTS if redirects else 0
        self._limit = limit
        inner = transport or _network(base, public_only)
        signing = _Signing(inner, self._origin, headers, is_own=transport is None)
        self._client = httpx2.AsyncClient(
            transport=signing,
            timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT)),
            follow_redirects=False,
            trust_env=False,
            headers={
                "user-agent": f"toolfold/{version('toolfold')}",
                "accept-encoding": ENCODINGS,
            },
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def send(
        self, request: HttpRequest, credentials: Sequence[Credential] = ()
    ) -> HttpAnswer:
        """Return what a request is answered with.

        Raises:
            httpx2.HTTPError: No answer came.
            httpx2.StreamError: The answer cannot be read.
        """
        answer, location = await self._sent(request, credentials)
        for _ in range(self._redirects):
            onward = None if location is None else self._onward(request, answer, location)
            if onward is None:
                break
            request = onward
            answer, location = await self._sent(request, credentials)
        return answer

    async def _sent(
        self, request: HttpRequest, credentials: Sequence[Credential]
    ) -> tuple[HttpAnswer, str | None]:
        built = self._client.build_request(
            request.method,
            request.url,
            headers=dict(request.headers),
            content=request.content,
            extensions={_SIGNATURE: tuple(credentials)},
        )
        response = await self._client.send(built, stream=True)
        try:
            content, is_cut = await _read(response, self._limit)
        finally:
            await response.aclose()
        location = response.headers.get("location") if response.is_redirect else None
        headers = {key.lower(): value for key, value in response.headers.items()}
        leads_to = None
        if location is not None:
            try:
                leads_to = origin_of(urljoin(request.url, location))[1]
            except ValueError:
                leads_to = ""
        answer = HttpAnswer(
            response.status_code, response.reason_phrase, headers, content, is_cut, leads_to
        )
        return answer, location

    def _onward(
        self, request: HttpRequest, answer: HttpAnswer, location: str
    ) -> HttpRequest | None:
        """Return the request that a redirect asks for, where it may be followed."""
        url = urljoin(request.url, location)
        try:
            if origin_of(url) != self._origin:
                return None
        except ValueError:
            return None
        if request.method != "GET" and answer.status != 303:
            return None  # what has effects is not sent a second time
        kept = {k: v for k, v in request.headers.items() if not k.lower().startswith("content-")}
        return HttpRequest("GET", url, kept)


class _Signing(httpx2.AsyncBaseTransport):
    """Puts headers and credentials into requests to one origin, unseen by the client above."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        origin: tuple[str, str, int],
        headers: Mapping[str, str],
        *,
        is_own: bool,
    ) -> None:
        self._inner = inner
        self._is_own = is_own
        self._origin = origin
        self._headers = headers

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if origin_of(str(url)) != self._origin:
            raise httpx2.UnsupportedProtocol("the request would leave the API's host")
        credentials: Sequence[Credential] = request.extensions.get(_SIGNATURE, ())
        headers = httpx2.Headers(request.headers)
        headers.update(self._headers)
        query, cookies = [url.query.decode()], [headers.get("cookie", "")]
        for each in credentials:
            pair = f"{encoded(each.name)}={encoded(each.value)}"
            if each.location == "header":
                headers[each.name] = each.value
            elif each.location == "query":
                query.append(pair)
            else:
                cookies.append(pair)
        if any(cookies):
            headers["cookie"] = "; ".join(filter(None, cookies))
        text = "&".join(filter(None, query))
        signed = httpx2.Request(
            request.method,
            url.copy_with(query=text.encode() if text else None),
            headers=headers,
            stream=request.stream,
            extensions={k: v for k, v in request.extensions.items() if k != _SIGNATURE},
        )
        return await self._inner.handle_async_request(signed)

    async def aclose(self) -> None:
        if self._is_own:
            await self._inner.aclose()


class _PublicOnly(httpx2.AsyncBaseTransport):
    """Connects to public addresses alone: a name is looked up once, judged, and gone to."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        address = await _public_address(url.host, url.port or 443)
        extensions = {**request.extensions, "sni_hostname": url.host}
        pinned = httpx2.Request(
            request.method,
            url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=extensions,
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _public_address(host: str, port: int) -> str:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise httpx2.ConnectError("its name is not known") from None
    addresses = [str(each[4][0]) for each in found]
    if not all(is_global(ipaddress.ip_address(a.partition("%")[0])) for a in addresses):
        raise NotPublicError("its name leads into a private network; name it as `base_url`")
    return addresses[0]


def _network(base: str, public_only: bool) -> httpx2.AsyncBaseTransport:
    """Return what carries requests to an address: as the environment says, unless it must not."""
    if public_only:
        return _PublicOnly()
    scheme, host, _ = origin_of(base)
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if proxy and not proxy_bypass(host):
        return httpx2.AsyncHTTPTransport(proxy=proxy if "://" in proxy else f"http://{proxy}")
    return httpx2.AsyncHTTPTransport()


async def _read(response: httpx2.Response, limit: int) -> tuple[bytes, bool]:
    """Return what a response holds, and whether there was more than the limit."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    content = bytearray()
    async for piece in UnpackedBody(response.stream, encodings_of(response)):
        content += piece
        if len(content) > limit:
            return bytes(content[:limit]), True
    return bytes(content), False
