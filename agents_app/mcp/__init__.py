"""Tools of MCP servers: where a server is, how to reach it, and what it lists.

The rows of tool sources are in `agents_app.models`, their admin is in `agents_app.admin`, and the
tools that ship with this server are in `agents_app.tools`.
"""
