"""Handlers of calls between people, and of agents in them (UAMP §7.3)."""
