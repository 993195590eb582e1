"""Tests of uap.serving."""
