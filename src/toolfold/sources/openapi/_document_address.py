"""A document at an address: asked for, and asked for again only where it has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx2

from toolfold._bounds import one_line
from toolfold.sources.openapi._http_client import HttpClient, NotPublicError
from toolfold.sources.openapi._requests import HttpRequest
from toolfold.sources.openapi._servers import origin_of
from toolfold.sources.openapi.api_document import SIZE_LIMIT
from toolfold.sources.openapi.http_api import HttpApi
from toolfold.sources.source import SourceError

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

__all__ = ["FETCHING", "DocumentAddress", "why_no_answer"]

FETCHING = 30.0
"""Seconds until a document must have come."""

_MARKS = {"if-none-match": "etag", "if-modified-since": "last-modified"}
_MARK_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class _Version:
    """What tells one document of an address from another."""

    digest: bytes = b""
    conditions: Mapping[str, str] = field(default_factory=dict[str, str])
    """The headers that ask for it only where it has changed."""


class DocumentAddress:
    """Where a document is, and what is known of the one that is used.

    Args:
        api: The API that names it.
        transport: What carries the requests, in place of the network.
    """

    def __init__(self, api: HttpApi, transport: AsyncBaseTransport | None = None) -> None:
        self._api = api
        self._transport = transport
        self._used = _Version()
        self._fetched = _Version()

    async def fetch(self) -> bytes | None:
        """Return the document; None where it is still the one that is used.

        Raises:
            SourceError: It cannot be had.
        """
        api = self._api
        is_own = not api.base_url or origin_of(api.base_url) == origin_of(api.url)
        client = HttpClient(
            api.url,
            headers=api.headers if is_own else {},
            timeout=FETCHING,
            limit=SIZE_LIMIT + 1,
            transport=self._transport,
        )
        try:
            request = HttpRequest("GET", api.url, {"accept": "*/*", **self._used.conditions})
            answer = await client.send(request)
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            raise SourceError(why_no_answer(error)) from None
        finally:
            await client.aclose()
        if answer.status == 304 and self._used.conditions:
            return None
        if answer.leads_to:
            raise SourceError(f"its address leads to the host {answer.leads_to}: give that one")
        if answer.status != 200:
            raise SourceError(f"its address answers {answer.status}")
        self._fetched = _Version(
            hashlib.sha256(answer.content).digest(),
            {
                ask: value
                for ask, told in _MARKS.items()
                if (value := answer.headers.get(told, ""))
                and value.isascii()
                and value.isprintable()
                and len(value) <= _MARK_LIMIT
            },
        )
        if self._fetched.digest == self._used.digest:
            self.use()
            return None
        return answer.content

    def use(self) -> None:
        """Take note that the document that came last can be used: it is asked for no more."""
        self._used = self._fetched


def why_no_answer(error: Exception) -> str:
    """Return why no answer came, in words that hold no address."""
    if isinstance(error, NotPublicError | httpx2.StreamError):
        return one_line(str(error), 200)
    if isinstance(error, httpx2.TimeoutException):
        return "it did not answer in time"
    if isinstance(error, httpx2.ConnectError):
        return "the API cannot be reached"
    if isinstance(error, httpx2.InvalidURL):
        return "the address that the arguments come to cannot be used"
    return "the connection broke"
