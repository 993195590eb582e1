"""How frames reach the server: a WebSocket, or HTTP with server-sent events.

They know no session's meaning; `uamp.client.connection` opens them and gives them frames.
"""
