"""Money that people put into their accounts, through providers that an operator chose.

`provider` is the interface, one module each implements it. A payment on a chain that comes with a
request is in `payments_app.x402`.
"""
