"""REST operations that start, follow and end turns, each sent as events of a UAMP client.

They go through the handlers of socket frames, so that members see the results live. Plain reads of
rows are in `rest`.
"""
