"""Connections: a client and a server object that talk to each other in memory."""
