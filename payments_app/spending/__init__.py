"""What a person or a token may spend."""
