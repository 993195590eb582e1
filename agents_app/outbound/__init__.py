"""Requests to addresses that a model, a page, a message or a row names: one guard for all.

`rules` judges an address without a request, `guard` fetches. Connections to models are in
`agents_app.providers`, those to MCP servers in `agents_app.mcp`: both use these rules.
"""
