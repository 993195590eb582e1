"""The protocols of remote agents: one module each, with a model that answers one request.

A module defines the request and interprets the pieces of the answer. Addresses and health are
handled in the folder above.
"""
