"""AG-UI 1.0: `read` makes a turn of the input of a run, `write` makes the events of the run.

Both are pure and know the protocol core only; `views` is the edge.
"""
