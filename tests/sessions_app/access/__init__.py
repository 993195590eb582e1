"""Tests of `sessions_app.access`."""
