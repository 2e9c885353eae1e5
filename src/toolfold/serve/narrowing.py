"""What exists for a principal: its own scope, within its profile's and everybody's.

Only ever less: each step intersects. A profile that is not there, or that a principal may not
ask under, leaves nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from toolfold._memo import Memo
from toolfold.scope import Scope

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.serve.principals import Principal

__all__ = ["Narrowing"]

_NOTHING = Scope(allow=())
_KEPT = 1024


class Narrowing:
    """Narrows principals, as one configuration has it.

    Args:
        config: The configuration.
        scope: The tools that exist for anybody at all, as the command line has it.
    """

    def __init__(self, config: GatewayConfig, scope: Scope) -> None:
        self._config = config
        self.scope = scope.also(config.scope) if not config.scope.holds_everything else scope
        """The tools that exist for anybody at all."""
        self._known: Memo[Principal, Principal] = Memo(_KEPT)

    def of(self, principal: Principal) -> Principal:
        """Return a principal within what exists for it."""
        is_whole = not principal.profile and principal.profiles is None
        if is_whole and self.scope.holds_everything:
            return principal
        return self._known.get_or(principal, lambda: self._narrowed(principal))

    def _narrowed(self, principal: Principal) -> Principal:
        profile = self._config.profile(principal.profile)
        is_there = profile is not None or not principal.profile
        if not is_there or not principal.may_ask_under(principal.profile):
            return replace(principal, scope=_NOTHING, read_only=True, watches=False)
        scope = principal.scope
        if not self.scope.holds_everything:
            scope = scope.also(self.scope)
        if profile is None:
            return replace(principal, scope=scope)
        return replace(
            principal,
            scope=scope.also(profile.scope),
            read_only=principal.read_only or profile.read_only,
        )
