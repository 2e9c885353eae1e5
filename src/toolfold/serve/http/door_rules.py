"""Whom a door over HTTP lets in, and with what: replaced whole when the configuration changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolfold.serve.http.addresses import Hosts, Origins, check_bind
from toolfold.serve.http.refusal import RefusedError
from toolfold.serve.principals import (
    LOCAL,
    Principal,
    TokenTable,
    admin_table,
    local_principal,
)

if TYPE_CHECKING:
    from toolfold.config.serve_settings import ServeSettings

__all__ = ["DoorRules"]


@dataclass(frozen=True, slots=True)
class DoorRules:
    """Whom a door lets in, and with what. A door may be given others while it is open."""

    doorkeeper: TokenTable
    """Who belongs to which token."""

    hosts: Hosts
    """The names under which the gateway may be asked."""

    origins: Origins
    """The pages that may ask."""

    local: Principal
    """Who everybody is where there are no tokens."""

    body_limit: int
    """The longest body, in bytes."""

    patience: float = 15.0
    """Seconds in which a body must have come."""

    admin: TokenTable | None = None
    """Knows the admin by their token; None where there is none."""

    profiles: frozenset[str] = frozenset()
    """The profiles that there are, each at a path of its own."""

    @classmethod
    def of(
        cls,
        settings: ServeSettings,
        host: str,
        block: str = "serve",
        before: DoorRules | None = None,
        profiles: frozenset[str] = frozenset(),
    ) -> DoorRules:
        """Return what the settings say, for a door at a host.

        Raises:
            ConfigError: A token cannot be used, or none guards an address others reach.
        """
        check_bind(host, settings, block)
        return cls(
            TokenTable.of(settings, before=None if before is None else before.doorkeeper),
            Hosts(host, settings.allowed_hosts),
            Origins(settings.allowed_origins),
            local_principal(settings),
            settings.body_limit,
            settings.request_timeout,
            admin_table(settings),
            profiles,
        )

    def under(self, profile: str, principal: Principal) -> Principal:
        """Return somebody who asks under a profile.

        Raises:
            RefusedError: There is none of that name, or it is not for them: the same for both.
        """
        known = not profile or profile in self.profiles
        if not known or not principal.may_ask_under(profile):
            raise RefusedError(404, "path", "not found")
        return replace(principal, profile=profile) if profile else principal

    def serves(self, name: str, profile: str) -> bool:
        """Whether somebody may still ask under a profile, as far as their name says."""
        owner = self.principal(name)
        is_there = not profile or profile in self.profiles
        return is_there and (owner is None or owner.may_ask_under(profile))

    def principal(self, name: str) -> Principal | None:
        """Return who has a name here, if anybody."""
        if self.doorkeeper.is_open:
            return self.local if name == self.local.name else None
        return self.doorkeeper.named(name)

    def serves_bearers_of(self, before: DoorRules) -> bool:
        """Whether those are still let in whose access tokens other rules took."""
        oauth, old = self.doorkeeper.oauth, before.doorkeeper.oauth
        return old is None or (oauth is not None and oauth.settings.issuer == old.settings.issuer)

    def grants_as(self, before: DoorRules) -> bool:
        """Whether access tokens are taken, and worth what they were worth, by other rules."""
        oauth, old = self.doorkeeper.oauth, before.doorkeeper.oauth
        return old is None or (oauth is not None and oauth.settings == old.settings)

    def judged_anew(self, bearer: Principal, before: DoorRules) -> Principal | None:
        """Return what the bearer of an access token is worth by now; None where that is unknown."""
        oauth, old = self.doorkeeper.oauth, before.doorkeeper.oauth
        return None if oauth is None or old is None else oauth.judged_anew(bearer, old)

    def revoked(self, before: DoorRules) -> frozenset[str]:
        """Return the names of those whom other rules let in, and these do not by that token."""
        if before.doorkeeper.is_open:
            return frozenset() if self.doorkeeper.is_open else frozenset({LOCAL.name})
        return before.doorkeeper.without(self.doorkeeper)
