"""Payment tokens: an account behind a signed secret, locks on it, its end, money added to it.

How a request pays with one over HTTP is in `payments_app.x402`. API keys and tickets, which prove
who a client is, are in `sessions_app.access`.
"""
