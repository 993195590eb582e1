"""The tests of the signed-envelope protocol."""
