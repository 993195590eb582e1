"""Tests of uap.uamp_adapter."""
