"""Runs of agents whose daemon has dialled in: what it claims, calls and answers."""
