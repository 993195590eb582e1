"""Server processes: several, idle, over many turns, and killed."""
