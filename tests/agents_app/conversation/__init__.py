"""Tests of `agents_app.conversation`."""
