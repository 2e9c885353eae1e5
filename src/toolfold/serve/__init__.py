"""The front doors that serve: the MCP gateway."""
