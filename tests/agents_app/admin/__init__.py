"""Tests of `agents_app.admin`."""
