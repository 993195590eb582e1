"""Tests of `sessions_app.transports`."""
