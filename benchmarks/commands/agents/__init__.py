"""The runtime of agents, and agents that run elsewhere."""
