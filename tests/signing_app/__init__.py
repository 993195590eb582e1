"""Tests of the signing room."""
