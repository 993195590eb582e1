"""Tests of uamp_project.backup."""
