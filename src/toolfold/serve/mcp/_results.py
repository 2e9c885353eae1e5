"""What the gateway itself answers: a text as a result, a failure as an error of the protocol."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, REQUEST_TIMEOUT

from toolfold._json_values import parse, text_of_any
from toolfold.sources.calls import Output
from toolfold.sources.mcp.mcp_source import ServerDownError
from toolfold.tool import Json, is_object

__all__ = ["as_errors", "output_result", "text_result"]


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


def output_result(output: Output) -> dict[str, Json]:
    """Return what a tool that speaks no MCP returned: a text, and an object as one, too."""
    result = text_result(_whole(output.text), is_error=output.is_error)
    structured = None if output.is_error else _object(output.value)
    return result if structured is None else {**result, "structuredContent": structured}


def _object(value: Json) -> dict[str, Json] | None:
    """Return a value as a JSON object, where that is what its JSON is."""
    if value is None or isinstance(value, str | int | float | list | tuple | set | frozenset):
        return None
    try:
        made = parse(_whole(text_of_any(value)))
    except (ValueError, RecursionError):
        return None
    return made if is_object(made) else None


def _whole(text: str) -> str:
    # Half a character cannot be sent.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
