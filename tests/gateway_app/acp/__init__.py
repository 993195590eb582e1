"""The Agent Client Protocol over each of its transports, at the real server."""
