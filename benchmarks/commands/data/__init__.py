"""Large chats and tables, and the ledger."""
