"""The gateway's configuration: the servers and functions behind it, and how to serve."""

from toolfold.config.configured_sources import sources_of
from toolfold.config.gateway_config import (
    GatewayConfig,
    find_config,
    load_gateway,
    missing_hint,
    user_config,
)
from toolfold.config.serve_settings import ServeSettings, Token
from toolfold.sources.function_modules import FunctionModule
from toolfold.sources.mcp.server import Server

__all__ = [
    "FunctionModule",
    "GatewayConfig",
    "ServeSettings",
    "Server",
    "Token",
    "find_config",
    "load_gateway",
    "missing_hint",
    "sources_of",
    "user_config",
]
