"""Serve the example over HTTP: `python -m conformance.example [PORT]`; prints its address."""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn

from conformance.example.server import ExampleServer


async def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    listening = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(ExampleServer().app(), log_level="warning")
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    await uvicorn.Server(config).serve(sockets=[listening])


asyncio.run(main())
