"""Tests of `chat_app.search`."""
