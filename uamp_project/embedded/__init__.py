"""The embedded run: what replaces Redis and separate workers on one machine.

The HTTP server of that run is in `uamp_project.servers`, its command in `uamp_project.management`.
"""
