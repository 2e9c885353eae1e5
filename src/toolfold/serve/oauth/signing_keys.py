"""The issuer's keys: kept, and read again when they are old or a token names an unknown one.

A key verifies what it was published for and nothing else: its kind, its curve and its own
`alg` say with which algorithms, whatever a token's header says. Symmetric and private keys are
passed over. While the issuer is away the last keys that were good go on counting.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolfold._json_values import Json, is_mapping
from toolfold.config.oauth_settings import ALGORITHMS
from toolfold.serve.oauth.issuer_documents import IssuerAwayError

if TYPE_CHECKING:
    from jwt import PyJWK

__all__ = ["SigningKeys"]

_log = logging.getLogger(__name__)

FRESH = 300.0
"""Seconds after which the keys are read again, though none was missed."""

KEYS_AT_MOST = 64
"""How many keys of an issuer are looked at."""

_RSA_BITS = 2048
_RSA = tuple(name for name in ALGORITHMS if name[:2] in ("RS", "PS"))
_BY_KIND: Mapping[tuple[str, str | None], tuple[str, ...]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}


@dataclass(frozen=True, slots=True)
class _Key:
    kid: str | None
    algorithm: str
    key: PyJWK


class SigningKeys:
    """Finds the key that a token is signed with.

    Args:
        read: Reads what the issuer publishes; raises `IssuerAwayError`.
        again: Seconds between two readings on account of a key that is not known.
        clock: Where the time comes from.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[Iterable[Json]]],
        *,
        again: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._again = again
        self._clock = clock
        self._keys: tuple[_Key, ...] = ()
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._is_away = False
        self._readings: int = 0
        self._lock = asyncio.Lock()
        self._later: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """Return the key of a name for an algorithm, or None.

        Without a name, the one that there is for the algorithm: of two, neither.

        Raises:
            IssuerAwayError: It is not known, and the issuer cannot be asked.
        """
        if self._is_old and not (self._is_away and self._keys):
            await self._refresh()
        elif self._is_old and self._later is None:
            # Nobody waits for an issuer that was away already.
            self._later = asyncio.create_task(self._refresh())
            self._later.add_done_callback(self._refreshed)
        found = self._found(kid, algorithm)
        if found is None and self._may_ask:
            await self._refresh()
            found = self._found(kid, algorithm)
        if found is None and self._is_away:
            raise IssuerAwayError
        return found

    def _found(self, kid: str | None, algorithm: str) -> PyJWK | None:
        fits = [
            key.key
            for key in self._keys
            if key.algorithm == algorithm and (kid is None or key.kid == kid)
        ]
        return fits[0] if len(fits) == 1 else None

    @property
    def _is_old(self) -> bool:
        return self._may_ask and (self._read_at is None or self._clock() - self._read_at >= FRESH)

    @property
    def _may_ask(self) -> bool:
        """Whether the issuer may be asked now, or is being asked."""
        return (
            self._tried_at is None
            or self._lock.locked()
            or self._clock() - self._tried_at >= self._again
        )

    def _refreshed(self, task: asyncio.Task[None]) -> None:
        self._later = None

    async def _refresh(self) -> None:
        """Read the keys; whoever comes meanwhile waits for the same reading."""
        before: int = self._readings
        async with self._lock:
            if self._readings != before:
                return
            self._tried_at = self._clock()
            try:
                keys = tuple(_usable(await self._read()))
                if not keys:
                    raise IssuerAwayError("none of its keys can be used")
            except IssuerAwayError as error:
                self._tell_away(error)
                return
            finally:
                self._readings += 1
            if self._is_away:
                _log.info("the issuer's keys can be read again")
            self._is_away = False
            self._keys, self._read_at = keys, self._clock()

    def _tell_away(self, error: IssuerAwayError) -> None:
        # Once for each time that it goes: whoever keeps asking must not fill the log.
        if not self._is_away:
            kept = (
                f"the {len({key.kid for key in self._keys})} that were read last go on counting"
                if self._keys
                else "no access token is taken until they can"
            )
            _log.warning("the issuer's keys cannot be read: %s; %s", error, kept)
        self._is_away = True


def _usable(published: Iterable[Json]) -> Iterable[_Key]:
    """Yield each key that verifies, once for each algorithm that it is for."""
    for number, jwk in enumerate(published):
        if number >= KEYS_AT_MOST:
            return
        if is_mapping(jwk):
            yield from _of(dict(jwk))


def _of(jwk: dict[str, Any]) -> Iterable[_Key]:
    kind, curve, kid = jwk.get("kty"), jwk.get("crv"), jwk.get("kid")
    if not isinstance(kind, str) or not isinstance(curve, str | None) or "d" in jwk:
        return
    if not isinstance(kid, str | None) or jwk.get("use", "sig") != "sig":
        return
    operations = jwk.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        return
    named = jwk.get("alg")
    for algorithm in _BY_KIND.get((kind, curve), ()):
        if named in (None, algorithm) and (key := _made(jwk, algorithm)) is not None:
            yield _Key(kid, algorithm, key)


def _made(jwk: dict[str, Any], algorithm: str) -> PyJWK | None:
    import jwt

    try:
        key = jwt.PyJWK(jwk, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    size = getattr(key.key, "key_size", None)
    return None if algorithm in _RSA and (size is None or size < _RSA_BITS) else key
