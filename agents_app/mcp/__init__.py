"""Tools of MCP servers: where a server is, how it is reached, what it lists."""
