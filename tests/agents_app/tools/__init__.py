"""Tests of `agents_app.tools`."""
