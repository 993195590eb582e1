"""REST of payments: accounts, tokens, locks, limits, sponsoring, top-ups, keys (docs/rest.md)."""
