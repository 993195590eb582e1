"""Tests of `chat_app.log`."""
