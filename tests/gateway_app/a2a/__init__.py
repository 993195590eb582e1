"""A2A on the real server: cards, both dialects of JSON-RPC, REST, and the specification's tasks."""
