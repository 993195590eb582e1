"""The tree of log heads in the rows of the server."""
