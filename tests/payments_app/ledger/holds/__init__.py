"""Holds: reserve, capture, release, expire; what is said twice happens once."""
