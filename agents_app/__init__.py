"""Agents: their rows, what they can do, and what runs them.

This is the only door to `upp`; it knows nothing of chats, sessions or sockets.
"""
