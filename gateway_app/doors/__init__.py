"""The access of foreign protocols to turns, kept responses and messages, agents and webhooks.

Dialects call `sessions_app`, `chat_app` and `agents_app` through these modules alone. No module
here imports a dialect.
"""
