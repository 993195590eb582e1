"""Envelopes (envelope §4): read, verified, written, with their bodies and extensions."""
