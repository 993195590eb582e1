"""Tests of `uamp.documents`."""
