"""Tests of `agents_app`."""
