"""The single end of a response: how it ended, what that costs, its terminal event, its last write."""
