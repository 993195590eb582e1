"""The doors to the rooms below: turns, kept responses and messages, agents, webhooks.

Dialects reach `sessions_app`, `chat_app` and `agents_app` by these modules alone. Nothing here
knows a dialect.
"""
