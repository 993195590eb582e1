"""The HTTP edges of the protocol."""
