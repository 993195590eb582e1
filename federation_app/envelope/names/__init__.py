"""Documents and tokens: what names publish and sign besides envelopes (envelope §6.2, §8)."""
