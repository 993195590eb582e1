"""Tools of MCP servers: where a server is, how it is reached, what it lists.

Rows of tool sources are in `agents_app.models`, their admin is in `agents_app.admin`, and
the tools that ship with the server are in `agents_app.tools`.
"""
