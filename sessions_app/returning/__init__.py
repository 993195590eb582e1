"""Reads of past responses and open sessions, for clients that come back without a connection."""
