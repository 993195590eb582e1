"""Checkpoints: when they are saved, and the stores."""
