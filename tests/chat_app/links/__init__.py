"""Tests of `chat_app.links`."""
