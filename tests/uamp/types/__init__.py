"""Tests of `uamp.types`."""
