"""Replies to writes in chats, for credentials that may write there but not read.

A reply shows the row that was written, and with it texts of others: an answer, the message that was
pinned, the title of a chat. Without the right to read, it has ids, states, numbers and times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agents_app.rest.rights import Rights

READS: Final = "chats:read"
_WRITES: Final = frozenset({"chats:write", "messages:write", "tools:approve"})
_SHOWN: Final = frozenset({"id", "object", "status", "kind", "role", "code", "agent", "url"})
_SHOWN_ENDS: Final = ("_id", "_at", "_url")


def may_show(rights: Rights, write_scope: str | None) -> bool:
    """Return whether a reply to a write under this scope may have the texts of chats."""
    return write_scope not in _WRITES or rights.has(READS)


def without_texts(value: Any, name: str = "") -> Any:
    """Return the value of a member without texts and lists of texts; its shape is the same."""
    if isinstance(value, dict):
        return {key: without_texts(member, str(key)) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_texts(item) for item in value if isinstance(item, dict)]
    if isinstance(value, str) and name not in _SHOWN and not name.endswith(_SHOWN_ENDS):
        return ""
    return value
