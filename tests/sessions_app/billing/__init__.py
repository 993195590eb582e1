"""Tests of `sessions_app.billing`."""
