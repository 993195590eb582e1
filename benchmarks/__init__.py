"""What is measured, against what, as ratios in one run: `python -m benchmarks --help`.

A benchmark starts real servers on fresh data, prints what it saw, asserts no figure and
leaves nothing behind. Every figure of the server stands beside that of a bare ASGI application that
sends the same frames in the same run.
"""

AGENT = "echo"
"""The scripted agent that every benchmark talks to: it says words back, one delta a word."""
PAID_AGENT = "paid-bench"
