"""Tests of uamp_project.embedded."""
