"""Patterns of scopes that match no tool: said, since a typing error would go unseen."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from toolfold.scope import Scope, may_match

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.serve.catalog.pool import Pool
    from toolfold.serve.mcp.resources import ResourceCatalog

__all__ = ["tell_unmatched"]

_log = logging.getLogger(__name__)


def tell_unmatched(
    config: GatewayConfig, scope: Scope, pool: Pool, offers: ResourceCatalog
) -> None:
    """Say which patterns match nothing, but for those of servers that have listed nothing yet.

    Args:
        config: Whose tokens and profiles are looked at.
        scope: The command line's.
        pool: The servers.
        offers: Their resources and prompts.
    """
    scopes = [
        *((f"token {each.name!r}", Scope(each.allow, each.deny)) for each in config.serve.tokens),
        *((f"profile {each.name!r}", Scope(each.allow, each.deny)) for each in config.profiles),
    ]
    scopes += () if scope.holds_everything else (("the command line", scope),)
    if not scopes:
        return
    there = [*pool.stock.tools, *offers.as_tools()]
    absent = [each.name for each in pool.upstreams.values() if each.lists.get("tools") is None]
    for whose, each in scopes:
        for pattern in each.unmatched(there):
            if not any(may_match(pattern, name) for name in absent):
                _log.warning("%s: the pattern %r matches no tool", whose, pattern)
