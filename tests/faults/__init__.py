"""Faults on purpose: programs that kill, cut and repeat, and count what is left."""
