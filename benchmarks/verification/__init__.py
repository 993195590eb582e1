"""A chat whose answers are signed and whose log is a chain, and the files that verify it."""
