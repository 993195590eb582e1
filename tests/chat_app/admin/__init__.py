"""Tests of `chat_app.admin`."""
