"""The agent cards: their contents (`card`, pure) and the paths that serve them."""
