"""Payment tokens: accounts behind signed secrets, locks on them, top-ups, and how they end.

`payments_app.x402` implements paying a request with one over HTTP. API keys and tickets, which
authenticate a client, are in `sessions_app.access`.
"""
