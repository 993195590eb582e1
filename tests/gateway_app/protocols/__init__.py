"""All protocols side by side: the directory of agents and the examples of their pages."""
