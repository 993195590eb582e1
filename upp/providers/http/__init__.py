"""HTTP to vendors' servers: connections, failures, server-sent events and the transport.

The requests and answers of each vendor are defined in the folder above.
"""
