"""Measurements as ratios within one run: `python -m benchmarks --help`.

A benchmark starts real servers on fresh data, prints its measurements, asserts no figure and leaves
nothing behind. Targets run in shuffled turns of a few seconds, so that all of them see the same
load on the machine; a figure is the median of the ratios over the rounds.
"""

AGENT = "echo"
"""The scripted agent used by every benchmark: it repeats the input, one delta per word."""
PAID_AGENT = "paid-bench"
MODEL_AGENT = "model-bench"
REMOTE_AGENT = "remote-bench"
"""The agent that is answered by a model over HTTP."""
