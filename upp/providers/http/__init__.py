"""HTTP to the servers of vendors: connections, failures, server-sent events, and the transport.

What one vendor's requests and answers look like is in the folder above.
"""
