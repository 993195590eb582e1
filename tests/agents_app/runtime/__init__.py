"""Tests of `agents_app.runtime`."""
