"""The cost of an answer, who pays it, and requests for payment.

Only `payments_app` moves money.
"""
