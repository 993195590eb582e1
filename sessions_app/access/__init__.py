"""Who a client is, and how much it may ask for: keys, tickets, passwords, rate limits.

Who may read a chat is decided in `chat_app`.
"""
