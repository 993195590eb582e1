"""Tests of uamp_project.settings."""
