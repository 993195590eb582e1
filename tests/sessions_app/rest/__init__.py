"""Tests of `sessions_app.rest`."""
