"""Tests of `agents_app.workers`."""
