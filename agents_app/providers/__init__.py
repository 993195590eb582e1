"""The models behind agents: clients, addresses, options and names; scripts that need no model.

Each vendor's wire format is in `upp.providers`.
"""
