"""The embedded run: replacements for Redis and separate workers on one machine.

Its HTTP server is in `uamp_project.servers`, its command in `uamp_project.management`.
"""
