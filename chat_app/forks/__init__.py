"""Chats that begin with the history of another one: what is copied, and where a chat comes from.

What a member may do with the copied messages is in `chat_app.conversation`, as with all others.
"""
