"""The single end of a response: how it ended, what that costs, its last write."""
