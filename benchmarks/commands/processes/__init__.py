"""Server processes: two of them, without work, over many turns, and killed."""
