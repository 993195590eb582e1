"""Tests of `sessions_app.connection`."""
