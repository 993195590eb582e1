"""Reads of agents for the other modules of the backend, and client secrets."""
