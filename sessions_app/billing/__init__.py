"""What an answer costs, who pays for it, and the requests for payment that wait for a person.

Money itself moves in `payments_app` alone.
"""
