"""Base classes of all REST apps: JSON bodies, views and problem documents (RFC 9457).

The routes are in `chat_app.rest`, `payments_app.rest` and `sessions_app.rest`.
"""
