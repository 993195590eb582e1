"""Tests of `sessions_app.response`."""
