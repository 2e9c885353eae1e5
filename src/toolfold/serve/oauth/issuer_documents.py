"""What an issuer publishes: its metadata, and the keys that its tokens are signed with.

Both are read within a bound of bytes and of time, follow no redirect, and count only where
they come over an encrypted connection or from this machine. Metadata count only where they
name the very issuer that the configuration does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolfold._json_values import Json, is_array, is_mapping, parse_strict
from toolfold.config.oauth_settings import check_address
from toolfold.errors import ConfigError

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["IssuerAwayError", "IssuerDocuments"]

LIMIT = 256 * 1024
"""How long a document may be, in bytes."""

PATIENCE = 5.0
"""Seconds that the issuer has for all that is asked at once."""


class IssuerAwayError(Exception):
    """What the issuer publishes cannot be had, or cannot be used."""


class IssuerDocuments:
    """Reads what an issuer publishes.

    Args:
        issuer: Its identifier, an address.
        jwks_uri: Where its keys are; empty, where its metadata say.
    """

    def __init__(self, issuer: str, jwks_uri: str = "") -> None:
        self._issuer = issuer
        self._jwks_uri = jwks_uri
        self._certificates: SSLContext | None = None

    async def keys(self) -> list[Json]:
        """Return the issuer's keys, as it publishes them.

        Raises:
            IssuerAwayError: They cannot be had.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                found = await self._read(self._jwks_uri or await self._found_uri())
        except TimeoutError:
            raise IssuerAwayError(f"no answer within {PATIENCE:g} s") from None
        keys = found.get("keys")
        if not is_array(keys) or not keys:
            raise IssuerAwayError("its key set is empty")
        return keys

    async def _found_uri(self) -> str:
        """Return where the metadata say that the keys are."""
        why = IssuerAwayError("it has no metadata")
        for address in _metadata_addresses(self._issuer):
            try:
                found = await self._read(address)
            except IssuerAwayError as error:
                why = error
                continue
            if found.get("issuer") != self._issuer:
                raise IssuerAwayError("its metadata name another issuer")
            uri = found.get("jwks_uri")
            if not isinstance(uri, str):
                raise IssuerAwayError("its metadata have no `jwks_uri`")
            self._check(uri)
            return uri
        raise why

    def _check(self, uri: str) -> None:
        try:
            check_address(uri, "jwks_uri")
        except ConfigError:
            raise IssuerAwayError("its metadata have a `jwks_uri` that is not taken") from None
        if uri.startswith("http:") and not self._issuer.startswith("http:"):
            raise IssuerAwayError("its metadata have a `jwks_uri` that is not encrypted")

    async def _read(self, address: str) -> Mapping[str, Json]:
        """Return the JSON object at an address."""
        import httpx2

        if self._certificates is None:
            # It takes a tenth of a second, in which nobody should have to wait.
            self._certificates = await asyncio.to_thread(httpx2.create_ssl_context)
        # Nothing packed is asked for, so that what comes is as long as it says.
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        body = bytearray()
        try:
            async with (
                httpx2.AsyncClient(verify=self._certificates, timeout=PATIENCE) as client,
                client.stream("GET", address, headers=headers, follow_redirects=False) as answer,
            ):
                if answer.status_code != 200:
                    raise IssuerAwayError(f"it answers with {answer.status_code}")
                async for piece in answer.aiter_raw():
                    body += piece
                    if len(body) > LIMIT:
                        raise IssuerAwayError(f"a document of it has more than {LIMIT:,} bytes")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise IssuerAwayError(type(error).__name__) from None
        try:
            found = parse_strict(bytes(body))
        except ValueError:
            raise IssuerAwayError("a document of it is no JSON") from None
        if not is_mapping(found):
            raise IssuerAwayError("a document of it is no JSON object")
        return found


def _metadata_addresses(issuer: str) -> Iterator[str]:
    """Yield where an issuer's metadata may be, as RFC 8414 and OpenID Connect have it."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    yield f"{origin}/.well-known/oauth-authorization-server{path}"
    yield f"{origin}{path}/.well-known/openid-configuration"
    if path:
        yield f"{origin}/.well-known/openid-configuration{path}"
