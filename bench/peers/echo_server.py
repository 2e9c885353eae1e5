"""The server behind every gateway of the bench: one tool that gives back what it got.

python echo_server.py stdio
python echo_server.py http PORT
"""

from __future__ import annotations

import sys
from typing import Any

from mcp.server import MCPServer

server = MCPServer("echo")


@server.tool()
def echo(mark: str) -> str:
    """Give a text back."""
    return mark


if __name__ == "__main__":
    if sys.argv[1] == "http":
        options: dict[str, Any] = {"host": "127.0.0.1", "port": int(sys.argv[2])}
        server.run(transport="streamable-http", **options)
    else:
        server.run(transport="stdio")
