"""Tests of `agents_app.providers`."""
