"""The only access of foreign protocols to the other apps.

Dialects reach turns, stored responses and messages, agents and webhooks in `sessions_app`,
`chat_app` and `agents_app` through these modules alone. No module here imports a dialect.
"""
