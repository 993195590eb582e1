"""Agents: their rows, what they can do, and what runs them (DESIGN D5).

The law: this is the only door to `upp`; it knows nothing of chats, sessions or sockets.
"""
