"""Django admin for sessions, responses and what they wait for, queued messages and webhooks.

`sessions`, `keys`, `waiting`, `queue` and `webhooks` contain the pages; `money` contains amounts
and links that other apps' pages use too.
"""

from sessions_app.admin import hours, identities, keys, queue, sessions, waiting, webhooks

__all__ = ["hours", "identities", "keys", "queue", "sessions", "waiting", "webhooks"]
