"""The cards of agents: what they have (`card`, pure), and the paths at which they are read."""
