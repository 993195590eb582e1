"""Peers: their documents, their keys, and whether they are trusted. Synchronous.

`documents` reads what a peer publishes through the guard of outbound requests; `registry` finds
peers and keys in rows, and adds, refreshes and revokes them.
"""
