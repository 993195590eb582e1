"""Converts between JSON text and events: loading, dialects, validation (UAMP §4, §13.1, §14.3).

`uamp.connection` checks the order of frames on a connection.
"""
