"""The Merkle tree of log heads and its signed notes, without a server."""
