"""Tests of `sessions_app.store`."""
