"""The cost of a turn: stored, paid, with a model, or over another protocol."""
