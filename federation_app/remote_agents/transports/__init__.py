"""Connections to the server of a peer, with a module for each transport (envelope §7).

A connection is a context manager. It sends one question or resumes its stream, and returns the
records that arrive. Connections use TLS 1.3, and only to addresses that the outbound rules permit.
"""
