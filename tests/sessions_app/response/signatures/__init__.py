"""Completed answers are signed, and what was changed since shows (UAMP §6.7)."""
