"""Handlers of calls between people, and of agents that take part (UAMP §7.3)."""
