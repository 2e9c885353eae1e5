"""The door of a gateway over HTTP while the configuration changes: whom it lets in from now on.

Whose token is gone, or another, is let in no more, and what they have open ends at once:
sessions, streams and requests under way. So does what is open under a profile that is gone, or
that its token is no longer for. Bearers of an issuer's tokens are judged by what their tokens
said; where that does not tell, their streams end, so that they come back with the tokens. For
everybody else nothing is interrupted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from toolfold.serve.http.conversations import ConversationDoor
from toolfold.serve.http.events import ResumableSessions
from toolfold.serve.http.guard import DoorRules, Guard
from toolfold.serve.oauth.grants import PREFIX as BEARERS
from toolfold.serve.principals import NOBODY

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.serve.gateway import Gateway

__all__ = ["GatewayDoor"]

_log = logging.getLogger(__name__)


class GatewayDoor:
    """Gives the parts of the door other rules.

    Args:
        gateway: The gateway behind it.
        guard: Whom it lets in.
        sessions: The sessions that are open.
        conversations: The conversations that are kept.
        host: The host that it is bound to.
    """

    def __init__(
        self,
        gateway: Gateway,
        guard: Guard,
        sessions: ResumableSessions,
        conversations: ConversationDoor,
        host: str,
    ) -> None:
        self._gateway = gateway
        self._guard = guard
        self._sessions = sessions
        self._conversations = conversations
        self._host = host
        self._ending: set[asyncio.Task[None]] = set()

    def prepared(self, config: GatewayConfig) -> Callable[[], None]:
        """Return what has the door keep to a configuration.

        Raises:
            ConfigError: A token cannot be used, or none guards an address others reach.
        """
        profiles = frozenset(profile.name for profile in config.profiles)
        rules = DoorRules.of(config.serve, self._host, before=self._guard.rules, profiles=profiles)
        return lambda: self._keep_to(rules)

    def _keep_to(self, rules: DoorRules) -> None:
        before, self._guard.rules = self._guard.rules, rules
        gone = rules.revoked(before)
        takes_bearers = rules.serves_bearers_of(before)

        def is_gone(name: str, profile: str) -> bool:
            return (
                name in gone
                or not rules.serves(name, profile)
                or (not takes_bearers and name.startswith(BEARERS))
            )

        judged: dict[tuple[str, str], bool] = {}
        for client in self._gateway.clients:
            old = client.admitted
            principal = rules.principal(old.name)
            if old.name.startswith(BEARERS):
                found = rules.judged_anew(old, before)
                client.admitted = found or replace(old, scope=NOBODY.scope, read_only=True)
                place = old.name, old.profile
                judged[place] = judged.get(place, True) and found is not None
            elif principal is not None and old.name not in gone:
                client.admitted = replace(principal, profile=old.profile)
            client.principal = self._gateway.narrowed(client.admitted)
        if gone:
            _log.info("let in no more: %s", ", ".join(sorted(gone)))
        self._guard.end(is_gone)
        if not rules.grants_as(before):
            self._guard.end_streams(
                lambda name, profile: (
                    name.startswith(BEARERS) and not judged.get((name, profile), False)
                )
            )
        self._conversations.drop(is_gone)
        task = asyncio.get_running_loop().create_task(self._sessions.end(is_gone))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
