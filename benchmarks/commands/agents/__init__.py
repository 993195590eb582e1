"""The runtime of agents, and agents whose answers come from elsewhere."""
