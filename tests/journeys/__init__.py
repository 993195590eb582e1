"""Stories through the whole server."""
