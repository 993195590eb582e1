"""JSON text to events and back: loading, other spellings, validation (UAMP §4, §13.1, §14.3).

The order of frames on a connection is checked in `uamp.connection`, not here.
"""
