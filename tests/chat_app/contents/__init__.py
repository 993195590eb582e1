"""Tests of `chat_app.contents`."""
