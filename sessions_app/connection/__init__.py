"""One client connection: its sessions, what it subscribes to, and the frames queued for it.

The transport that carries it is in `transports`, what an event does is in `handlers`.
"""
