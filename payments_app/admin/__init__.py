"""Django admin of the ledger, of tokens and spending limits. Ledger rows are read-only."""

from payments_app.admin import accounts, movements, spending

__all__ = ["accounts", "movements", "spending"]
