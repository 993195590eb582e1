"""AG-UI 1.0: `read` turns the input of a run into a turn, `write` produces the run's events.

Both are pure and import only the protocol core; `views` is the edge.
"""
