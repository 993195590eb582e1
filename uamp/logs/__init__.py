"""The hash chain of a chat's log, its checkpoints, and their check."""
