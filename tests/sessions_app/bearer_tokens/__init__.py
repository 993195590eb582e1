"""Tests of signed access tokens."""
