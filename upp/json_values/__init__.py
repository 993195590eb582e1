"""JSON values: frozen, plain for encoding, and parsed from unfinished text.

No type of the protocol is defined here.
"""
