"""Reads of agents for the other doors, and client secrets."""
