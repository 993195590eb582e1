"""The management commands, and the checks and arguments that they share."""
