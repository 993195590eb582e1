"""Chats and their members: membership, payers, receipts, presence.

Every change is an entry that `chat_app.log` appends. Accounts and amounts are in `payments_app`.
"""
