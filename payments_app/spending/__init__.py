"""Limits, budgets and approvals of people and tokens, and holds within them.

Rows are in `payments_app.spending_rows`. Who pays for an answer is decided in
`sessions_app.billing`.
"""
