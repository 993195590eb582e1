"""Authentication and limits of clients: keys, tickets, passwords, rates.

Who may read a chat is decided in `chat_app`.
"""
