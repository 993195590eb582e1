"""Servers that speak a dialect in their own way, on a real socket."""
