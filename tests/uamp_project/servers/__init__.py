"""Tests of uamp_project.servers."""
