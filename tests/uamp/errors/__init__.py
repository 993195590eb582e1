"""Tests of `uamp.errors`."""
