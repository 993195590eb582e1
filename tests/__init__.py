"""Tests mirror the rooms; see CONTRIBUTING.md."""
