"""Tests of uamp_project.edge."""
