"""Tests of `chat_app.browser`."""
