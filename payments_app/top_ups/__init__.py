"""Money that people pay into their accounts, through providers that an operator chose.

`provider` is the interface, implemented by one module each. Payments on a chain that arrive with a
request are in `payments_app.x402`.
"""
