"""Django admin for sessions, responses and what they wait for, queued messages and webhooks.

`sessions`, `keys`, `waiting`, `queue`, `webhooks` and `daemons` contain the pages; `agents` and
`people` add operations to pages of other apps; `money` contains amounts and links that other apps'
pages use too.
"""

from sessions_app.admin import (
    agents,
    daemons,
    hours,
    identities,
    keys,
    people,
    queue,
    sessions,
    waiting,
    webhooks,
)

__all__ = [
    "agents",
    "daemons",
    "hours",
    "identities",
    "keys",
    "people",
    "queue",
    "sessions",
    "waiting",
    "webhooks",
]
