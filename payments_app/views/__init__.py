"""The REST of payments: tokens, locks, balances, limits, top-ups (docs/rest.md)."""
