"""Tests of uamp_project.sign_in."""
