"""Authentication and limits of clients: keys, tickets, passwords, rates.

`chat_app` decides who may read a chat.
"""
