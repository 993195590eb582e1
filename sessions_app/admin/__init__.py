"""Django admin of sessions, their responses and what those wait for, queued messages and webhooks.

`sessions`, `queue` and `webhooks` have the pages, `money` the amounts and links that pages of
other apps show too.
"""

from sessions_app.admin import queue, sessions, webhooks

__all__ = ["queue", "sessions", "webhooks"]
