"""The input of clients before a turn uses it: limits, stored rows, media (UAMP §5.3).

`pending` has the limits, `rows` stores input that comes over HTTP, `media` stores what inputs and
histories contain.
"""
