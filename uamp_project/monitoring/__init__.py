"""Monitoring: log formats, the metrics at `/metrics`, and the export of spans.

`telemetry` collects them; the probes are in `uamp_project.health`.
"""
