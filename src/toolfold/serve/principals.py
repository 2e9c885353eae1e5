"""Who asks, and what exists for them.

Every request has a `Principal`. Over standard input and output it is `LOCAL`; over HTTP
it is the one whose token the request carries. Listing, searching, describing and calling
all ask `principal.admits`, so what a principal may not use does not exist for it.

A token is held as its SHA-256 digest and nothing else. A presented one is compared with
every digest there is, in time that tells nothing of which of them came near.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from toolfold.errors import ConfigError
from toolfold.scope import EVERYTHING, Scope
from toolfold.store.store import DEFAULT_TENANT
from toolfold.tool import Json, Tool

if TYPE_CHECKING:
    from toolfold.config.serve_settings import ServeSettings, Token
    from toolfold.serve.oauth.protected_resource import ProtectedResource

__all__ = [
    "LOCAL",
    "NOBODY",
    "Principal",
    "TokenTable",
    "check_name",
    "local_principal",
    "principal_of",
]

SHORTEST_TOKEN = 16
_LONGEST_TOKEN = 4096
_KEY = "toolfold.principal"


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who may use a part of the tools.

    Example:
        reader = Principal("reader", Scope(allow=("@github",)), read_only=True)
        hints = {"readOnlyHint": True}
        assert reader.admits(Tool("github__get", source="github", annotations=hints))
        assert not reader.admits(Tool("github__push", source="github"))
    """

    name: str
    """What logs and the audit call it."""

    scope: Scope = EVERYTHING
    """The tools that exist for it."""

    read_only: bool = False
    """Whether only tools that say of themselves that they change nothing exist for it."""

    rate_limit: int = 0
    """Requests a minute; 0 is no limit."""

    watches: bool = False
    """Whether it may read `/metrics`, which names servers and tools whoever may use them."""

    tenant: str = DEFAULT_TENANT
    """Whose it is, among those who share a deployment."""

    profile: str = ""
    """The profile that it asks under; empty where it asks under none."""

    profiles: frozenset[str] | None = None
    """The profiles that it may ask under, and no others; None where it may ask anywhere."""

    until: float | None = field(default=None, compare=False)
    """When what it was let in by ends, in seconds since 1970; None where it does not."""

    claims: Mapping[str, Json] = field(default_factory=dict[str, Json], compare=False, repr=False)
    """What its access token said, where it was let in by one."""

    @property
    def whose(self) -> str:
        """Names whose a conversation is: what begins under one profile goes on under no other."""
        return f"{self.name}\0{self.profile}" if self.profile else self.name

    def may_ask_under(self, profile: str) -> bool:
        """Whether it may ask under a profile; an empty name is none."""
        return self.profiles is None or profile in self.profiles

    def admits(self, tool: Tool) -> bool:
        """Whether the tool exists for this principal."""
        return (tool.is_read_only or not self.read_only) and tool in self.scope


LOCAL = Principal("local", watches=True)
"""The person at this machine: no token, everything."""

ADMIN = Principal("the admin", Scope(allow=()), read_only=True)
"""Whoever changes the gateway over HTTP; for them, no tool exists."""

NOBODY = Principal("nobody", Scope(allow=()), read_only=True)
"""Whoever was let in by no door: for them, nothing exists."""


_OWN_NAMES = (LOCAL.name, NOBODY.name, ADMIN.name)


def check_name(name: str, bearers: str | None = None) -> None:
    """Refuse a name for a token that somebody else has.

    Args:
        name: The name.
        bearers: What the names of an issuer's bearers begin with, where there may be some.

    Raises:
        ConfigError: It is one of toolfold's own, or like that of a bearer.
    """
    if name in _OWN_NAMES:
        raise ConfigError(
            f"a token is named {name!r}, which toolfold uses itself",
            hint="give every entry under `tokens` a `name` of its own",
        )
    if bearers is not None and name.startswith(bearers):
        raise ConfigError(
            f"the token {name!r} is named like somebody whom the issuer knows",
            hint=f"give it a name that does not begin with `{bearers}`",
        )


def local_principal(settings: ServeSettings) -> Principal:
    """Return the principal of requests that need no token."""
    return replace(LOCAL, read_only=settings.read_only, rate_limit=settings.rate_limit)


def principal_of(scope: Mapping[str, Any]) -> Principal:
    """Return the principal that the door wrote into an ASGI scope, or `NOBODY`."""
    found = scope.get(_KEY)
    return found if isinstance(found, Principal) else NOBODY


def bind(scope: MutableMapping[str, Any], principal: Principal) -> None:
    """Write the principal into an ASGI scope."""
    scope[_KEY] = principal


@dataclass(frozen=True, slots=True)
class _Entry:
    digest: bytes
    principal: Principal


class TokenTable:
    """Knows who belongs to a token.

    Args:
        entries: Pairs of a token's SHA-256 digest and its principal.
        oauth: Knows those who have an issuer's access token; None where no issuer is named.

    Raises:
        ConfigError: Two principals have the same token or the same name.
    """

    def __init__(
        self,
        entries: Iterable[tuple[bytes, Principal]] = (),
        oauth: ProtectedResource | None = None,
    ) -> None:
        self.oauth = oauth
        """Knows those who have an issuer's access token, where one is named."""
        self._entries = tuple(_Entry(digest, principal) for digest, principal in entries)
        names: dict[str, bytes] = {}
        owners: dict[bytes, str] = {}
        for entry in self._entries:
            name = entry.principal.name
            check_name(name, None if oauth is None else oauth.prefix)
            if name in names:
                raise ConfigError(
                    f"two principals are named {name!r}",
                    hint="give every entry under `tokens` a `name` of its own",
                )
            if entry.digest in owners:
                raise ConfigError(
                    f"the tokens {owners[entry.digest]!r} and {name!r} are the same",
                    hint="make a token for each, for example with `openssl rand -hex 32`",
                )
            names[name] = entry.digest
            owners[entry.digest] = name

    def __repr__(self) -> str:
        return f"TokenTable({[entry.principal.name for entry in self._entries]})"

    @classmethod
    def of(
        cls,
        settings: ServeSettings,
        environment: Mapping[str, str] | None = None,
        before: TokenTable | None = None,
    ) -> TokenTable:
        """Return the doorkeeper that the settings describe.

        Args:
            settings: The settings.
            environment: Holds tokens that the settings name.
            before: The one so far, where there is one: an issuer's keys stay known.

        Raises:
            ConfigError: A token is missing from the environment, too short or doubled.
        """
        from toolfold.serve.oauth.protected_resource import ProtectedResource

        variables = os.environ if environment is None else environment
        entries = [
            (_digest(token, variables), _principal(token, settings)) for token in settings.tokens
        ]
        known = None if before is None else before.oauth
        return cls(entries, ProtectedResource.of(settings, known))

    @property
    def is_open(self) -> bool:
        """Whether there are no tokens and no issuer of any, so that nobody is asked for one."""
        return not self._entries and self.oauth is None

    def named(self, name: str) -> Principal | None:
        """Return who has a name, or None."""
        found = (entry.principal for entry in self._entries if entry.principal.name == name)
        return next(found, None)

    def without(self, other: TokenTable) -> frozenset[str]:
        """Return the names that another table has not, or for another token."""
        digests = {entry.principal.name: entry.digest for entry in other._entries}
        return frozenset(
            entry.principal.name
            for entry in self._entries
            if digests.get(entry.principal.name) != entry.digest
        )

    def admit(self, token: str) -> Principal | None:
        """Return whose token this is, or None."""
        # An empty one, too: its digest is what an unset variable comes to.
        if not SHORTEST_TOKEN <= len(token) <= _LONGEST_TOKEN:
            return None
        presented = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        found: Principal | None = None
        # Every entry is compared, found or not: how long it takes depends on their number.
        for entry in self._entries:
            if hmac.compare_digest(presented, entry.digest):
                found = entry.principal
        return found


def admin_table(
    settings: ServeSettings, environment: Mapping[str, str] | None = None
) -> TokenTable | None:
    """Return what knows the admin by their token; None where there is none.

    Raises:
        ConfigError: The token is missing from the environment, or too short, or somebody else's.
    """
    from toolfold.config.serve_settings import Token

    if settings.admin == "off":
        return None
    variables = os.environ if environment is None else environment
    is_digest = settings.admin.startswith("sha256:")
    token = Token(
        "the admin's",
        env="" if is_digest else settings.admin,
        sha256=settings.admin if is_digest else "",
    )
    digest = _digest(token, variables)
    if any(_digest(other, variables) == digest for other in settings.tokens):
        raise ConfigError(
            "the admin's token is also somebody else's",
            hint="make one for the admin alone, for example with `openssl rand -hex 32`",
        )
    return TokenTable([(digest, Principal("the admin's"))])


def _principal(token: Token, settings: ServeSettings) -> Principal:
    scope = Scope(token.allow, token.deny)
    return Principal(
        token.name,
        scope,
        read_only=token.read_only or settings.read_only,
        rate_limit=settings.rate_limit if token.rate_limit is None else token.rate_limit,
        watches=scope.holds_everything and not token.read_only and token.profiles is None,
        tenant=token.tenant,
        profiles=None if token.profiles is None else frozenset(token.profiles),
    )


def _digest(token: Token, variables: Mapping[str, str]) -> bytes:
    if token.sha256:
        digest = bytes.fromhex(token.sha256.removeprefix("sha256:"))
        if digest == hashlib.sha256(b"").digest():
            raise ConfigError(
                f"the digest of the token {token.name!r} is that of nothing at all",
                hint="the variable was not set when the digest was made: make it again",
            )
        return digest
    value = variables.get(token.env, "").strip()
    if not value:
        raise ConfigError(
            f"the token {token.name!r} is to be in the variable {token.env!r}, which is not set",
            hint=f"set it, for example with `export {token.env}=$(openssl rand -hex 32)`",
        )
    if len(value) < SHORTEST_TOKEN:
        raise ConfigError(
            f"the token {token.name!r} in {token.env!r} has {len(value)} characters",
            hint=f"use at least {SHORTEST_TOKEN}, for example from `openssl rand -hex 32`",
        )
    return hashlib.sha256(value.encode()).digest()
