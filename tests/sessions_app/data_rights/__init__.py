"""Tests of sessions_app.data_rights."""
