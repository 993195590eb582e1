"""Tests mirror the apps and their folders; see CONTRIBUTING.md."""
