"""The gRPC binding of envelopes (envelope §7): its proto, what is generated of it, and the server.

What an envelope or a delta means is in `federation_app.exchange`; a stream of records is read by
the socket of `federation_app.edges.websocket`.
"""
