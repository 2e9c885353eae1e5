"""The gateway's configuration: the servers behind it, and how to serve."""

from toolfold.config.gateway_config import (
    GatewayConfig,
    find_config,
    load_gateway,
    missing_hint,
    user_config,
)
from toolfold.config.serve_settings import ServeSettings, Token
from toolfold.sources.mcp.server import Server

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
