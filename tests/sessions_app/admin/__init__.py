"""Tests of `sessions_app.admin`."""
