"""The gateway's configuration: the servers behind it, and how to serve."""

from toolfold.serve.config.load import (
    GatewayConfig,
    find_config,
    load_gateway,
    missing_hint,
    user_config,
)
from toolfold.serve.config.options import ServeSettings, Token
from toolfold.serve.config.servers import Server

__all__ = [
    "GatewayConfig",
    "ServeSettings",
    "Server",
    "Token",
    "find_config",
    "load_gateway",
    "missing_hint",
    "user_config",
]
