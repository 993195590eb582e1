"""Tests of `agents_app.outbound`."""
