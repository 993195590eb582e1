"""Tests of chat_app."""
