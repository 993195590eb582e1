"""Chats with many members, with a client that stops reading, and in a browser."""
