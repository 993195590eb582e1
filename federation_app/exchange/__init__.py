"""Envelopes without a transport: a peer acts as a UAMP client inside the process.

`receiver.EnvelopeReceiver` takes the bytes of an envelope and returns a receipt, whose stream
yields deltas. Every transport calls it; turns start through the handlers of UAMP's own events.
"""
