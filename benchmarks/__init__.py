"""Measurements as ratios within one run: `python -m benchmarks --help`.

A benchmark starts real servers on fresh data, prints what it saw, asserts no figure and
leaves nothing behind. What is compared runs in shuffled turns of a few seconds, so that both sides
meet the same load of the machine; a figure is the median of the ratios of the rounds.
"""

AGENT = "echo"
"""The scripted agent that every benchmark talks to: it says words back, one delta a word."""
PAID_AGENT = "paid-bench"
MODEL_AGENT = "model-bench"
REMOTE_AGENT = "remote-bench"
"""The agent for which a model over HTTP answers."""
