"""The values that events carry: content items, sessions, capabilities, numbers (UAMP §8, §9).

Events are in `uamp.events`. Nothing here imports another folder of `uamp`.
"""
