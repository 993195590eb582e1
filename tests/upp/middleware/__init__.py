"""Tests of `upp.middleware`."""
