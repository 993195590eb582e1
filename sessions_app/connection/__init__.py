"""A client connection: its sessions, its subscriptions and its outgoing queue.

`transports` carries connections; `handlers` process their events.
"""
