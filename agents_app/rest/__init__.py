"""Bases of the REST views of all apps: JSON bodies, views and problem documents (RFC 9457).

There are no routes here: `chat_app.rest`, `payments_app.rest` and `sessions_app.rest` have them.
"""
