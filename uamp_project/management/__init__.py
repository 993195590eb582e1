"""The commands `serve` and `demo`, and what they check first."""
