"""Django admin of sessions, their responses and what those wait for, queued messages and webhooks.

`sessions`, `keys`, `waiting`, `queue` and `webhooks` have the pages, `money` the amounts and links
that pages of other apps show too.
"""

from sessions_app.admin import hours, identities, keys, queue, sessions, waiting, webhooks

__all__ = ["hours", "identities", "keys", "queue", "sessions", "waiting", "webhooks"]
