"""FastMCP's own proxy with its BM25 search, over HTTP: the peer of our gateway.

python fastmcp_gateway.py PORT URL        # before a server over HTTP
python fastmcp_gateway.py PORT COMMAND…   # before a server over pipes
"""

from __future__ import annotations

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
from fastmcp.server.transforms.search import BM25SearchTransform

if __name__ == "__main__":
    port, first, *rest = sys.argv[1:]
    upstream = first if first.startswith("http") else StdioTransport(command=first, args=rest)
    proxy = create_proxy(upstream, name="proxy")
    proxy.add_transform(BM25SearchTransform())
    proxy.run(transport="http", port=int(port), show_banner=False, log_level="ERROR")
