"""What speaks MCP to clients."""
