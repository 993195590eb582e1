"""The models behind agents: their clients, addresses, options and names; scripts that need none.

The wire of each vendor is in `upp.providers`.
"""
