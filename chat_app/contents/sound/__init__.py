"""The sound of stored files: how long it lasts at most."""
