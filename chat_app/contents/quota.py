"""Owners of stored contents, their file size limits, and their quotas.

Every person has a quota; visitors share one, because each of their sessions has a different key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Count, Q, Sum

from chat_app.contents.media_types import (
    InvalidMedia,
)
from chat_app.models import Content

# The prefix of a visitor's key (sessions_app.access.auth.anonymous).
VISITOR_KEYS: Final = "anonymous:"
AGENT_KEYS: Final = "chat:"
_ELSEWHERE_KEYS: Final = "elsewhere:"


class QuotaExceeded(InvalidMedia):
    """The owner has used up their quota."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentOwner:
    """The owner of a new file: a person, or a session or chat by its key.

    `chats` are the chats that the person's credential is for, if not for all: of their files, it
    reads those that these chats show and those that no chat shows yet.
    """

    user_id: int | None = None
    key: str = ""
    chats: frozenset[str] | None = None

    @property
    def is_agent(self) -> bool:
        """Whether an agent stores it, for its chat."""
        return self.user_id is None and self.key.startswith(AGENT_KEYS)


def of_other_servers(chat_id: str) -> ContentOwner:
    """Return the owner of the files of a chat that came from other servers.

    No person owns them, so they are deleted with the last message that shows them.
    """
    return ContentOwner(key=f"{_ELSEWHERE_KEYS}{chat_id}")


def of_any_chat_elsewhere() -> Q:
    """Return the condition that a file came from another server.

    A range, because LIKE does not use a text index on either database.
    """
    return Q(owner=None, owner_key__gt=_ELSEWHERE_KEYS, owner_key__lt=f"{_ELSEWHERE_KEYS}zzzz")


def largest_file(owner: ContentOwner) -> int:
    """Return an owner's file size limit in bytes: the highest limit of a person's groups.

    Agents, which store for their chat, and people in no group with a limit, are bound only by the
    server's own limit.
    """
    by_group, limit = settings.UAMP_UPLOAD_BYTES_BY_GROUP, int(settings.UAMP_UPLOAD_BYTES)
    if not by_group or (owner.user_id is None and not owner.key.startswith(VISITOR_KEYS)):
        return limit
    names: list[str] = []
    if owner.user_id is not None:
        names = list(Group.objects.filter(user=owner.user_id).values_list("name", flat=True))
    limits = [by_group[name] for name in names if name in by_group]
    return min(limit, max(limits) if limits else by_group.get("", limit))


def check_quota(owner: ContentOwner, size: int) -> None:
    """Raise QuotaExceeded if an owner may not store that many more bytes; needs a transaction."""
    if owner.user_id is not None:
        # Concurrent uploads are counted one after the other.
        get_user_model().objects.select_for_update(no_key=True).filter(pk=owner.user_id).first()
    check_room(owner, size)


def check_room(owner: ContentOwner, size: int) -> None:
    """Check the quota without a lock, before the work on a file that would be refused."""
    if owner.user_id is not None:
        stored_by_owner = Content.objects.filter(owner_id=owner.user_id)
    else:
        stored_by_owner = Content.objects.filter(owner_id=None, owner_key=owner.key)
    max_bytes, max_files = settings.UAMP_STORED_BYTES_PER_USER, settings.UAMP_STORED_FILES_PER_USER
    if owner.user_id is None and owner.key.startswith(VISITOR_KEYS):
        # Every session of a visitor has a different key, so visitors share one quota.
        stored_by_owner = Content.objects.filter(owner_id=None, owner_key__startswith=VISITOR_KEYS)
        max_bytes = settings.UAMP_ANONYMOUS_STORED_BYTES
        max_files = settings.UAMP_ANONYMOUS_STORED_FILES
    stored = stored_by_owner.aggregate(bytes=Sum("size_bytes"), files=Count("pk"))
    if (stored["bytes"] or 0) + size > max_bytes:
        raise QuotaExceeded(f"You can store at most {max_bytes} bytes. Delete some files first.")
    if stored["files"] >= max_files:
        raise QuotaExceeded(f"You can store at most {max_files} files. Delete some first.")
