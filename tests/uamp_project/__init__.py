"""Tests of the composition and of the embedded run."""
