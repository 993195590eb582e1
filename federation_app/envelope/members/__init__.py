"""Envelopes (envelope §4): reading, verifying and writing, with bodies and extensions."""
