"""Changes that members make to sent messages."""
