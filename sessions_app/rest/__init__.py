"""REST for sessions: history, payments, schemas, tickets and discovery.

Chats and messages are in `chat_app.rest`, the ledger in `payments_app.rest`.
"""
