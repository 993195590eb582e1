"""JSON values: frozen, encoded from similar types, and parsed from incomplete text.

No type of the protocol is defined here.
"""
