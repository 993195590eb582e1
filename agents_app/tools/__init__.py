"""Server tools: what a tool is, and those that ship with the server.

Tools of MCP servers are in `mcp`; how a call runs is in `sessions_app.tools`.
"""
