"""x402: payment by HTTP headers, with tokens of this server or on a chain.

`requirements` builds the body of a 402 and `required_headers` its headers; `accept` takes the
payment of the retry before the work begins, and `accept_from_peer` that of a peer server. All of it
is synchronous: both may query a facilitator over HTTP, so call them from a thread that may block,
outside a transaction.
"""

from payments_app.x402.accepting import Accepted, PaymentNotTaken, accept, accept_from_peer
from payments_app.x402.headers import payment_in_headers
from payments_app.x402.offers import VERSION, exact_offer, required_headers, requirements

__all__ = [
    "VERSION",
    "Accepted",
    "PaymentNotTaken",
    "accept",
    "accept_from_peer",
    "exact_offer",
    "payment_in_headers",
    "required_headers",
    "requirements",
]
