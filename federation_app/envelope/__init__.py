"""Envelopes, their signatures and deltas, manifests and hubs, without socket, clock or database.

It imports no Django and no app. Times and keys are arguments; what is refused is an EnvelopeError.

`members` are those of an envelope, `signatures` what signs, `names` what a name publishes,
`streams` deltas and windows.
"""
