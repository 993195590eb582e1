"""Tests of `agents_app.mcp`."""
