"""Stored media: who may read one, its type, and who owns a new file.

The REST views are in `chat_app.rest`. `agents_app.conversation` decides how a model sees a medium.
"""
