"""Double entry: accounts, transfers, holds and how they end, and the SQL that writes them.

Nothing else writes these rows; other apps call `payments_app.services`.
"""
