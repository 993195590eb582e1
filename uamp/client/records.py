"""The REST responses as typed values; unknown fields are ignored (docs/rest.md).

Times are in UTC. Every id is an opaque string.
"""

from datetime import datetime
from typing import Any

import msgspec


class AgentPrice(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of an agent, as decimal strings in ``currency``."""

    currency: str
    per_answer: str
    input_per_1k: str
    output_per_1k: str


class AgentListing(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that the caller may use; ``pricing`` is None if it is free."""

    id: str
    name: str
    description: str = ""
    pricing: AgentPrice | None = None


class ChatParticipant(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a chat; ``kind`` is user or agent, ``trigger`` says when an agent answers."""

    id: str
    kind: str
    name: str
    role: str
    trigger: str | None = None
    online: bool | None = None


class ChatSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A chat as the caller sees it; ``kind`` is group, or session for a private chat."""

    id: str
    title: str
    kind: str
    created_at: datetime
    latest_at: datetime
    last_seq: int
    epoch: str
    unread: int = 0
    role: str = ""
    participants: tuple[ChatParticipant, ...] = ()


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message in its current state; ``seq`` is its place in the log of its chat."""

    id: str
    chat_id: str
    seq: int
    role: str
    content: str
    name: str
    sender_id: str
    sender_kind: str
    created_at: datetime
    content_items: tuple[dict[str, Any], ...] = ()
    response_id: str | None = None
    status: str = "completed"
    thread: str | None = None
    revision: int = 0
    edited_at: datetime | None = None
    deleted_at: datetime | None = None
    chat_title: str = ""


class WrittenMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The REST response to sending a message."""

    message: StoredMessage


class StoredContent(msgspec.Struct, frozen=True, kw_only=True):
    """A file on the server; ``item`` is the content item that refers to it."""

    content_id: str
    url: str
    mime_type: str
    size_bytes: int
    filename: str
    sha256: str
    item: dict[str, Any]


class StoredUpload(msgspec.Struct, frozen=True, kw_only=True):
    """A file being uploaded in parts: ``offset`` of ``length`` bytes have arrived."""

    id: str
    length: int
    offset: int
    content: StoredContent | None = None


class AccountBalance(msgspec.Struct, frozen=True, kw_only=True):
    """The caller's money, as decimal strings; ``held`` is reserved for running answers."""

    available: str
    held: str
    currency: str


class IssuedKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key of the caller; ``secret`` is present only in the response that creates it."""

    id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]
    chats: tuple[str, ...] | None = None
    agents: tuple[str, ...] | None = None
    protocols: tuple[str, ...] | None = None
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
    secret: str = ""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The person whom the key belongs to."""

    id: str
    username: str
    display_name: str = ""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a list; ``next_cursor`` leads to the next page."""

    data: list[dict[str, Any]]
    has_more: bool = False
    next_cursor: str | None = None
