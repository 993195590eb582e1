"""Reads of agents for the doors, and the secrets of clients."""
