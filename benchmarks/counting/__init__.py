"""Instructions of a turn, counted by callgrind: they hardly vary with the machine's load."""
