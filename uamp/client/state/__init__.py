"""The state of a client, without a socket: a session, its turns, and the answers as they grow.

The shells in `uamp.client` pass events in, and send and carry out what comes out.
"""
