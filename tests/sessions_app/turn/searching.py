"""A client tool."""

SEARCH = {"type": "function", "function": {"name": "search"}}
