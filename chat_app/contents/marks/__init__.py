"""Marks inside the files that agents make, for machines to read."""
