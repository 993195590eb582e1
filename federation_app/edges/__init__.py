"""The transports of envelopes (envelope §7): HTTP with SSE, WebSocket, and the documents of §8.

An edge decodes its transport and calls `exchange.receiver`; it knows no turn and no row.
"""
