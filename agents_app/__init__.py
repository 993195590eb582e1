"""Agents: their rows, what they can do, and what runs them.

It alone imports `uap` and `upp`, and knows nothing of chats, sessions or sockets.
"""
