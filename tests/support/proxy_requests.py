"""Requests with four tools in each dialect of the proxy."""

from __future__ import annotations

from typing import Any

from toolfold import Settings

__all__ = ["NAMES", "ON", "PATHS", "request", "tools"]

ON = Settings(enabled="on")
NAMES = ("send_email", "read_file", "list_issues", "translate_text")
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
}


def tools(dialect: str, *names: str) -> list[dict[str, Any]]:
    """Return tools of these names."""
    made: list[dict[str, Any]] = []
    for name in names or NAMES:
        about = {"name": name, "description": name.replace("_", " ").capitalize() + "."}
        takes = {"type": "object", "properties": {"to": {"type": "string"}}}
        if dialect == "anthropic-messages":
            made.append({**about, "input_schema": takes})
        elif dialect == "openai-responses":
            made.append({"type": "function", **about, "parameters": takes})
        else:
            made.append({"type": "function", "function": {**about, "parameters": takes}})
    return made


def request(dialect: str, **more: Any) -> dict[str, Any]:
    """Return a request of a user for something to be done."""
    said = [{"role": "user", "content": "mail a@b.c"}]
    key = "input" if dialect == "openai-responses" else "messages"
    limit = {"max_tokens": 100} if dialect == "anthropic-messages" else {}
    return {"model": "m", key: said, "tools": tools(dialect), **limit, **more}
