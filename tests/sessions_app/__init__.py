"""Tests of sessions_app."""
