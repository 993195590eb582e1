"""Runs of agents: events out of requests, tools through the broker, failures in safe words."""
