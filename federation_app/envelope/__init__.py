"""Envelopes, signatures, deltas, manifests and hubs, without socket, clock or database.

Imports neither Django nor any app. Times and keys are arguments; every refusal is an EnvelopeError.

`members` reads and writes envelopes, `signatures` signs them, `names` handles the documents and
tokens of names, and `streams` deltas and windows.
"""
