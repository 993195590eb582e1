"""Tool calls that a person has to allow: who may, once, for how long, and what the model reads."""
