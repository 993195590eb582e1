"""The signed-envelope protocol (UAMP signed envelope 1.0): an edge for servers that sign.

`envelope/` is pure: what an envelope is, and whether it is good. The rest knows peers and runs
turns. UAMP's own events are in `uamp/`; the two protocols share a name alone.
"""
