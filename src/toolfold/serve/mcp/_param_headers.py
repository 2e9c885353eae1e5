"""`Mcp-Param-` headers of a call over HTTP: they must say what its arguments say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PARAM_HEADER_PREFIX, validate_mcp_param_headers

from toolfold._json_values import compact_bytes
from toolfold.tool import Json, is_object

__all__ = ["check_headers", "speaks_of_arguments"]

_PREFIX = MCP_PARAM_HEADER_PREFIX.lower()


def speaks_of_arguments(params: Mapping[str, Json], headers: Mapping[str, str]) -> bool:
    """Whether a call has arguments that headers may repeat, or headers that do."""
    if not isinstance(params.get("name"), str):
        return False
    return bool(params.get("arguments")) or any(key.startswith(_PREFIX) for key in headers)


def check_headers(
    params: Mapping[str, Json], headers: Mapping[str, str], tools: Iterable[Json]
) -> None:
    """Refuse a call whose headers say something else than its arguments.

    Args:
        params: What the call says.
        headers: The request's.
        tools: What the client lists.

    Raises:
        MCPError: They differ.
    """
    name, given = params.get("name"), params.get("arguments")
    listed = next((tool for tool in tools if tool.get("name") == name), None)
    schema = None if listed is None else listed.get("inputSchema")
    if not is_object(schema) or b"x-mcp-header" not in compact_bytes(schema):
        return
    rejection = validate_mcp_param_headers(schema, given if is_object(given) else {}, headers)
    if rejection is not None:
        raise MCPError(rejection.code, rejection.message, rejection.data)
