"""How bytes travel: to servers over pipes, HTTP or SSE, and to the client over our own pipes."""
