"""What a person or a token may spend: limits, budgets, approvals, and holds within them.

Rows are in `payments_app.spending_rows`. Who pays for an answer is decided in
`sessions_app.billing`.
"""
