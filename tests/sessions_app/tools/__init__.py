"""Tests of `sessions_app.tools`."""
