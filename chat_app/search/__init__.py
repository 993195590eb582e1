"""The search in a chat's messages, and the index of the database behind it.

The tool that calls it for agents is `agents_app.tools.chat_search`.
"""
