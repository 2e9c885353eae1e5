"""MCP servers as sources: how each is reached, kept alive, asked and listened to."""
