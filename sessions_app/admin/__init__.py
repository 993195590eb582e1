"""Django admin of sessions, their responses, calls and payment requests.

`sessions` has the pages, `money` the amounts and links that pages of other rooms show too.
"""

from sessions_app.admin import sessions

__all__ = ["sessions"]
