"""Tests of uamp_project.monitoring and telemetry."""
