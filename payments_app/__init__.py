"""Money: one double-entry ledger for every route."""
