"""Tests of chat_app.people."""
