"""Tests of `chat_app.export`."""
