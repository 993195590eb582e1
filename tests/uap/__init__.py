"""Tests of uap."""
