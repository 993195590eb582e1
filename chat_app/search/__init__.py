"""The search for messages, and the database index behind it.

The tool that calls it for agents is `agents_app.tools.chat_search`.
"""
