"""Tests of `sessions_app.process`."""
