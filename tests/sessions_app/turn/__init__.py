"""Tests of `sessions_app.turn`."""
