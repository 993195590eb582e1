"""Tests of `uamp.codec`."""
