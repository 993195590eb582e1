"""Tests of `chat_app.rest`."""
