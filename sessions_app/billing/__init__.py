"""The cost of an answer, its payer, and requests for payment.

Money itself moves in `payments_app` alone.
"""
