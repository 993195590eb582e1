"""x402: payment by HTTP headers, with tokens of this server or on a chain.

`requirements` makes the body of a 402 and `required_headers` its headers; `accept` takes what came
with the next try, before the work begins. All of it is synchronous: `accept` may ask a facilitator
over HTTP, and is called from a thread that may wait, outside a transaction.
"""

from payments_app.x402.accepting import Accepted, PaymentNotTaken, accept
from payments_app.x402.headers import sent
from payments_app.x402.offers import required_headers, requirements

__all__ = ["Accepted", "PaymentNotTaken", "accept", "required_headers", "requirements", "sent"]
