"""Limits, budgets and approvals of people and tokens, and holds within them.

Rows are in `payments_app.spending_rows`. `sessions_app.billing` decides who pays for an answer.
"""
