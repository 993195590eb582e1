"""The files of a personal export: what the person wrote, read and stored in chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from chat_app.export.formats import ndjson
from chat_app.export.pages import pages
from chat_app.models import Chat, Content, Message, Participant, PushSubscription
from chat_app.people.profiles import profile_data
from chat_app.people.settings import settings_data, settings_of
from uamp.codec.single_lines import single_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from django.contrib.auth.models import User

    from chat_app.export.pages import FailedAnswers, Receipts

PAGE: Final = 200


def about(user: User) -> dict[str, Any]:
    """Return the profile, the settings, and the chats that the person is or was in.

    The title of a chat that they left is None, since it may have changed afterwards.
    """
    joined = Participant.objects.filter(user=user).select_related("chat").order_by("joined_at")
    return {
        "profile": profile_data(user),
        "settings": settings_data(settings_of(user.pk)),
        "push_subscriptions": list(
            PushSubscription.objects.filter(user=user)
            .order_by("created_at")
            .values("device", "endpoint", "created_at", "sent_at", "failures")
        ),
        "chats": [
            {
                "id": row.chat_id,
                "title": row.chat.title if row.left_at is None else None,
                "role": row.role,
                "joined_at": row.joined_at,
                "left_at": row.left_at,
            }
            for row in joined
        ],
    }


def chats(
    user: User, receipts: Receipts, failures: FailedAnswers
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the name of a file and its lines for each chat that the person is in."""
    current = Participant.objects.filter(user=user, left_at__isnull=True)
    for chat in Chat.objects.filter(pk__in=current.values("chat_id")).order_by("pk").iterator():
        read = pages(chat, user.pk, receipts=receipts, failures=failures)
        yield f"chats/{chat.pk}.ndjson", ndjson(chat, read)


def message_lines(user: User) -> Iterator[bytes]:
    """Yield a line for each message of the person, including those in chats that they left.

    Copies in forks are left out: others made them, in chats that the person may not know of.
    """
    rows = Message.objects.filter(sender_user=user, copied_from__isnull=True)
    rows = rows.order_by("chat_id", "seq")
    for row in rows.iterator(PAGE):
        line = {
            "id": row.pk,
            "chat_id": row.chat_id,
            "seq": row.seq,
            "created_at": row.created_at,
            "edited_at": row.edited_at,
            "deleted_at": row.deleted_at,
            "content": row.content,
            "content_items": row.content_items,
        }
        yield single_lines(msgspec.json.encode(line)) + b"\n"


def stored_files(user: User) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and the open file of each content of the person; the reader closes it."""
    for content in Content.objects.filter(owner=user).order_by("created_at", "pk").iterator():
        name = f"files/{content.pk}-{content.filename or 'file'}"
        yield name, content.blob.open("rb")
