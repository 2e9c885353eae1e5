"""What the gateway itself answers: a text as a result, a failure as an error of the protocol."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, REQUEST_TIMEOUT

from toolfold.sources.mcp.mcp_source import ServerDownError
from toolfold.tool import Json

__all__ = ["as_errors", "text_result"]


class as_errors:
    """Turns what only tools answer in words into errors of the protocol."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, ServerDownError):
            raise MCPError(INTERNAL_ERROR, str(error)) from None
        if isinstance(error, TimeoutError):
            raise MCPError(REQUEST_TIMEOUT, "the server took too long") from None


def text_result(text: str, *, is_error: bool) -> dict[str, Json]:
    """Return a result that is one text."""
    result: dict[str, Json] = {"content": [{"type": "text", "text": text}]}
    return {**result, "isError": True} if is_error else result
