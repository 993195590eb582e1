"""The gRPC binding of envelopes (envelope §7): its proto, the generated code and the server.

`federation_app.exchange` interprets envelopes and deltas; the socket of
`federation_app.edges.websocket` reads a stream of records.
"""
