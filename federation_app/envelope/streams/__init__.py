"""Streams (envelope §5, §7): deltas, their windows, and records on a WebSocket."""
