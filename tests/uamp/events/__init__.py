"""Tests of `uamp.events`."""
