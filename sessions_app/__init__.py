"""Native UAMP: sessions, the turn, and the transports of the protocol (UAMP §13)."""
