"""Transports of frames to the server: a WebSocket, or HTTP with server-sent events.

They know nothing about sessions; `uamp.client.connection` opens them and passes them frames.
"""
