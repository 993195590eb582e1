"""x402: payment by HTTP headers, with tokens of this server or on a chain.

`requirements` builds the body of a 402 and `required_headers` its headers; `accept` takes the
payment of the retry before the work begins. All of it is synchronous: `accept` may query a
facilitator over HTTP, so call it from a thread that may block, outside a transaction.
"""

from payments_app.x402.accepting import Accepted, PaymentNotTaken, accept
from payments_app.x402.headers import payment_in_headers
from payments_app.x402.offers import required_headers, requirements

__all__ = [
    "Accepted",
    "PaymentNotTaken",
    "accept",
    "payment_in_headers",
    "required_headers",
    "requirements",
]
