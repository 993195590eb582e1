"""The transports of envelopes (envelope §7), and the documents of §8.

An edge decodes its transport and calls `exchange.receiver`; it knows no turns or rows.
"""
