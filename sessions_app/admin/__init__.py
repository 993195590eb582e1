"""Django admin of sessions, their responses, calls, payment requests and webhooks.

`sessions` and `webhooks` have the pages, `money` the amounts and links that pages of other apps
show too.
"""

from sessions_app.admin import sessions, webhooks

__all__ = ["sessions", "webhooks"]
