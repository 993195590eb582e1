"""Tests of `sessions_app.rest_turns`."""
