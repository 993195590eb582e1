"""Money: one double-entry ledger for every route (DESIGN D7)."""
