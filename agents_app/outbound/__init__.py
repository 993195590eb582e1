"""Requests to addresses named by a model, a page, a message or a row, all behind one guard.

`rules` decides about an address without connecting; `guard` fetches. Connections to models are in
`agents_app.providers`, those to MCP servers in `agents_app.mcp`; both use these rules.
"""
