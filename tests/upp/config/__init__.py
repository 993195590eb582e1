"""Tests of `upp.config`."""
