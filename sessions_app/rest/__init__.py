"""REST over sessions: their history, payments, schemas and tickets, and discovery.

Chats and messages are in `chat_app.rest`, the ledger is in `payments_app.rest`.
"""
