"""Terms on which peers are answered: capability tokens, and payments on a chain."""
