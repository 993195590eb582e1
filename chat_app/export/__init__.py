"""Chats as files for their members: the pages of messages and the file formats.

Requests and rights are in `chat_app.rest`.
"""
