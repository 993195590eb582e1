"""Stored media: who may read one, what kind it is, what is stored for whom."""
