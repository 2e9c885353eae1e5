"""What a configuration's tools come from, as sources: its servers, functions and APIs."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from toolfold.errors import ConfigError, MissingExtraError
from toolfold.sources.function_modules import load_functions
from toolfold.sources.openapi import HttpApi, OpenAPISource
from toolfold.sources.source import Source

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.sources.mcp.hub import Alone, Hub

__all__ = ["load_api", "load_apis", "sources_of"]

_log = logging.getLogger(__name__)


def sources_of(config: GatewayConfig, *, hub: Alone | None = None) -> list[Source]:
    """Return a source for each server of a configuration, each of its modules and each API.

    None is open yet. The modules of functions are loaded, and to load one is to run it. A
    server that is known not to start comes with the others, and says why when it is opened;
    so does an API whose document cannot be used.

    Example:
        config = load_gateway("toolfold.yaml", strict=False)
        async with Agent(model, sources_of(config), settings=config.settings) as agent:
            ...

    Args:
        config: The configuration.
        hub: Who brings the servers together, and holds back what a person must look at first;
            by default each stands alone.

    Raises:
        MissingExtraError: There are servers, and the extra `mcp` is not installed; or APIs,
            and the extra `openapi` is not.
        ConfigError: A module of functions cannot be loaded.
    """
    apis = load_apis(config)
    for api in apis:
        if api.problem is not None:
            _log.warning("openapi %s: %s", api.name, api.problem)
    return [
        *_servers(config, hub),
        *map(load_functions, config.functions),
        *(apis if hub is None else map(hub.trusted, apis)),
    ]


def load_apis(config: GatewayConfig) -> list[OpenAPISource]:
    """Return a source for each API of a configuration; one that cannot be used says why."""
    return [load_api(api, config.serve.description_limit) for api in config.apis]


def load_api(api: HttpApi, limit: int) -> OpenAPISource:
    """Return a source for an API; where it cannot be used, one that says why.

    Args:
        api: The API.
        limit: The longest description that is passed on.
    """
    try:
        return OpenAPISource(api, description_limit=limit)
    except MissingExtraError:
        raise
    except ConfigError as error:
        return OpenAPISource(replace(api, problem=error))


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
