"""Double entry: accounts, transfers, holds and their ends, and the SQL that writes them.

Nothing else writes these rows; `payments_app.services` has what other apps may call.
"""
