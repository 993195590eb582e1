"""Django admin of chats, their calls, members, messages and contents."""

from chat_app.admin import (
    calls,
    chats,
    contents,
    link_cards,
    links,
    log_states,
    log_tree,
    members,
    messages,
    people,
    push,
    repeats,
    site,
    transcripts,
    uploads,
)

__all__ = [
    "calls",
    "chats",
    "contents",
    "link_cards",
    "links",
    "log_states",
    "log_tree",
    "members",
    "messages",
    "people",
    "push",
    "repeats",
    "site",
    "transcripts",
    "uploads",
]
