"""The client's state, without a socket: a session, its turns, and its growing answers.

The shells in `uamp.client` pass events in, and send or carry out the results.
"""
