"""Reports about money for people: statements, costs of answers, sums by day.

It only reads. The checks that find a damaged ledger are in `payments_app.audit`.
"""
