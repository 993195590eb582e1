"""Money: one double-entry ledger, and all that moves money through it.

Other apps write with `services` and read with `selectors`. What an answer costs and who pays for
it is decided in `sessions_app.billing`; the price of an agent is in `agents_app.pricing`.
"""
