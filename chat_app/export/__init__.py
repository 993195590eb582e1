"""A chat as a file for its members: pages of its messages, and the formats of the file.

Requests and rights are in `chat_app.rest`.
"""
