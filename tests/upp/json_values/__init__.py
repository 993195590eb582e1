"""Tests of `upp.json_values`."""
