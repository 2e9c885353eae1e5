"""Where clients come in, as the gateway knows it: told when the configuration changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig

__all__ = ["Door"]


class Door(Protocol):
    """Keeps to the configuration, and to the next one where there is one."""

    def prepared(self, config: GatewayConfig) -> Callable[[], None]:
        """Return what has the door keep to a configuration.

        Raises:
            ConfigError: It cannot; the door stays as it is.
        """
        ...
