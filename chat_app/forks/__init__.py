"""Chats that begin with the history of another chat: copying it, and recording its origin.

What a member may do with copied messages is up to `chat_app.conversation`, as for any others.
"""
