"""The search in a chat's messages, and the index of the database behind it."""
