"""Chats and tables that have grown, and the ledger."""
