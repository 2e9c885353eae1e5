"""What a configuration's tools come from, as sources: its servers and its functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfold.errors import MissingExtraError
from toolfold.sources.function_modules import load_functions
from toolfold.sources.source import Source

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.sources.mcp.hub import Hub

__all__ = ["sources_of"]


def sources_of(config: GatewayConfig, *, hub: Hub | None = None) -> list[Source]:
    """Return a source for each server of a configuration, then one for each of its modules.

    None is open yet. The modules of functions are loaded, and to load one is to run it. A
    server that is known not to start comes with the others, and says why when it is opened.

    Example:
        config = load_gateway("toolfold.yaml", strict=False)
        async with Agent(model, sources_of(config), settings=config.settings) as agent:
            ...

    Args:
        config: The configuration.
        hub: Who brings the servers together; by default each stands alone.

    Raises:
        MissingExtraError: There are servers, and the extra `mcp` is not installed.
        ConfigError: A module of functions cannot be loaded.
    """
    return [*_servers(config, hub), *map(load_functions, config.functions)]


def _servers(config: GatewayConfig, hub: Hub | None) -> list[Source]:
    if not config.servers:
        return []
    try:
        from toolfold.sources.mcp.mcp_source import McpSource
        from toolfold.sources.mcp.oauth import signer
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("toolfold"):
            raise
        raise MissingExtraError("reaching MCP servers", "mcp") from None
    serve = config.serve
    sign = signer(serve.state_folder)
    return [
        McpSource(
            server,
            hub,
            parallel=serve.max_parallel,
            auth=sign(server) if server.oauth else None,
            description_limit=serve.description_limit,
        )
        for server in config.servers
    ]
