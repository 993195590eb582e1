"""The way to a provider's server: address, keys, retries (UPP-1.3 §4).

Requests to a model are defined in `upp.model` and sent in `upp.providers`.
"""
