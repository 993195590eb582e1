"""Envelopes without a transport: a peer is a UAMP client inside the process.

`receiver.EnvelopeReceiver` takes the bytes of an envelope and returns a receipt, whose stream
yields deltas. Every transport calls it, and it starts turns by the handlers of UAMP's own events.
"""
