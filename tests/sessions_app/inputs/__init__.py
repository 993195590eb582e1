"""Tests of `sessions_app.inputs`."""
