"""The bridge between UAMP and uap agents: UAMP messages in, UAMP events out.

Together with `uap.serving`, this is the only part of `uap` that knows `uamp`. It stores and sends
nothing.
"""
