"""How a provider's server is reached: address, keys, retries (UPP-1.3 §4).

What a model is asked is in `upp.model`; requests are sent in `upp.providers`.
"""
