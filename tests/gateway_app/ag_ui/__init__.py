"""AG-UI, on the real server: runs, their state, and clients that come back."""
