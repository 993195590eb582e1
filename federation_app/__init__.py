"""The signed-envelope protocol (UAMP signed envelope 1.0): an edge for servers that sign.

`envelope/` is pure: it defines envelopes and verifies them. The other folders know peers and run
turns. UAMP's own events are in `uamp/`; the two protocols share only a name.
"""
