"""Monitoring: the form of the log, the metrics at `/metrics`, and where spans are sent.

What they are counted from is in `telemetry`; the probes are in `uamp_project.health`.
"""
