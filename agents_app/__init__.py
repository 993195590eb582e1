"""Agents: their rows, their capabilities and the code that runs them.

This is the only app that imports `uap` and `upp`. It knows nothing of chats, sessions or sockets.
"""
