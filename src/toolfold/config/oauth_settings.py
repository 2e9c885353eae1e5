"""Whose access tokens the gateway takes: every key under `serve: oauth:`.

The gateway is a resource server: an issuer that the configuration names says who somebody is,
and the grants here say what that is worth. Nothing that a token says widens a grant.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from toolfold.errors import ConfigError
from toolfold.settings.declared import check_fields, setting

__all__ = ["ALGORITHMS", "Grant", "OAuthSettings", "check_address"]

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""How a token may be signed: with a key of which the gateway has the public half alone."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a scope, a group or a role of the issuer's is worth here."""

    name: str = setting("", "The value that stands in one of the claims of `oauth.claims`.")
    allow: tuple[str, ...] = setting(
        ("*",), "Patterns of the tools that exist for who has it; `@NAME` is a whole server."
    )
    deny: tuple[str, ...] = setting((), "Patterns of tools that do not; they win over `allow`.")
    read_only: bool = setting(
        False, "Whether only tools that say they change nothing exist for who has it."
    )
    profiles: tuple[str, ...] | None = setting(
        None, "The profiles under which it counts, and nowhere else; unset, everywhere."
    )

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError(
                "a grant has no `name`", hint="give it the scope's or the group's: `name: tools`"
            )
        check_fields(self, f"oauth.grants.{self.name}.")


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """Whose access tokens are taken, and what they are worth. Frozen and checked."""

    issuer: str = setting(
        "", "Who makes the tokens, exactly as their `iss` has it: `https://login.example.com`."
    )
    resource: str = setting(
        "",
        "The gateway's own address as clients write it: `https://tools.example.com/mcp`. Its "
        "metadata name it, and clients ask the issuer for a token for it.",
    )
    audience: tuple[str, ...] = setting(
        (),
        "What a token's `aud` must hold, one of these exactly; empty, the `resource`.",
    )
    jwks_uri: str = setting(
        "", "Where the issuer's keys are; empty, where the issuer's own metadata say."
    )
    algorithms: tuple[str, ...] = setting(
        ALGORITHMS, f"How tokens may be signed; of {', '.join(ALGORITHMS)}."
    )
    leeway: float = setting(
        30.0,
        "Seconds by which the issuer's clock and the gateway's may differ.",
        low=0,
        high=300,
    )
    refetch: float = setting(
        10.0,
        "Seconds after which the issuer may be asked again because a token names a key that is "
        "not known.",
        low=0,
        high=3_600,
    )
    claims: tuple[str, ...] = setting(
        ("scope", "scp"),
        "The claims that hold grants' names: `groups`, `roles`, or `realm_access.roles` for one "
        "inside another.",
    )
    grants: tuple[Grant, ...] = setting((), "What they are worth; a list of blocks.")
    default: str = setting(
        "", "The grant of those whose token has none of them; empty, they are let in no further."
    )
    scopes: tuple[str, ...] = setting(
        (), "The scopes that clients are told to ask the issuer for. Everybody may read them."
    )
    tenant: str = setting("", "The claim that names the tenant; without one, it is `default`.")

    def __post_init__(self) -> None:
        check_fields(self, "oauth.")
        for key in ("issuer", "resource"):
            if not getattr(self, key):
                raise ConfigError(f"`serve.oauth` has no `{key}`", hint="give it its address")
        check_address(self.issuer, "serve.oauth.issuer")
        check_address(self.resource, "serve.oauth.resource")
        if self.jwks_uri:
            check_address(self.jwks_uri, "serve.oauth.jwks_uri")
        self._check_algorithms()
        self._check_grants()

    def _check_algorithms(self) -> None:
        odd = next((name for name in self.algorithms if name not in ALGORITHMS), None)
        if odd is not None or not self.algorithms:
            said = "is empty" if odd is None else f"has {odd!r}"
            raise ConfigError(
                f"`serve.oauth.algorithms` {said}", hint=f"use some of {', '.join(ALGORITHMS)}"
            )

    def _check_grants(self) -> None:
        names = [grant.name for grant in self.grants]
        if not names:
            raise ConfigError(
                "`serve.oauth` has no `grants`, so nobody would be let in",
                hint="say what a scope or a group is worth: `grants: [{name: tools}]`",
            )
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"two grants are named {twice!r}", hint="put them together")
        if self.default and self.default not in names:
            raise ConfigError(
                f"`serve.oauth.default` is {self.default!r}, which is no grant",
                hint=f"use one of {', '.join(names)}, or leave it out",
            )
        for scope in self.scopes:
            # What stands in a header has no quotes: https://www.rfc-editor.org/rfc/rfc6749#appendix-A
            if not all("!" <= c <= "~" and c not in '"\\' for c in scope):
                raise ConfigError(
                    f"`serve.oauth.scopes` has {scope!r}",
                    hint="write visible characters without spaces, quotes and backslashes",
                )

    @property
    def audiences(self) -> tuple[str, ...]:
        """What a token may be made for."""
        return self.audience or (self.resource,)

    def resource_under(self, profile: str) -> str:
        """Return the address of a profile, as a resource of its own; empty, the gateway's.

        Where the `resource` is no address of the gateway's own path, it stands for all of them.
        """
        path = urlsplit(self.resource).path.rstrip("/")
        return (
            f"{self.resource.rstrip('/')}/{profile}"
            if profile and path.endswith("/mcp")
            else (self.resource)
        )

    def audiences_under(self, profile: str) -> tuple[str, ...]:
        """Return what a token may be made for that is used under a profile."""
        own = () if self.audience else (self.resource_under(profile),)
        return tuple(dict.fromkeys((*self.audiences, *own)))


def check_address(address: str, key: str) -> None:
    """Raise where what is read from an address could be somebody else's word.

    Args:
        address: Where something is.
        key: What it is, for the error.

    Raises:
        ConfigError: It is no address, or is neither encrypted nor on this machine.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    is_plain = all("!" <= c <= "~" and c not in '"\\' for c in address)
    if not host or not is_plain or parts.fragment or "@" in parts.netloc:
        raise ConfigError(
            f"`{key}` is no address: {address!r}", hint="write it as `https://login.example.com`"
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_here(host)):
        raise ConfigError(
            f"`{key}` is {address!r}, which is not encrypted",
            hint="use `https://`; `http://` is taken on this machine alone",
        )


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
