"""Peers: their documents, their keys and the trust in them. Synchronous.

`documents` fetches the documents that a peer publishes, through the outbound guard; `registry`
finds peers and keys in rows, and adds, refreshes and revokes them.
"""
