"""A tool of the client that searches."""

SEARCH = {"type": "function", "function": {"name": "search"}}
