"""Tests of `upp.conversation`."""
