"""Money: one double-entry ledger, and everything that moves money through it.

Other apps write with `services` and read with `selectors`. `sessions_app.billing` decides what an
answer costs and who pays for it; the price of an agent is in `agents_app.pricing`.
"""
