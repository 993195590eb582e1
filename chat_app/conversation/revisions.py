"""Edits of messages: one log entry for each, and the row with the latest text.

Synchronous. Answers to the earlier text stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from django.db import transaction
from django.utils import timezone

import uamp
from chat_app.conversation.errors import (
    EmptyMessage,
    NotTheAuthor,
    RevisionConflict,
    TooManyRevisions,
)
from chat_app.conversation.messages import append_act, locked_message
from chat_app.ids import new_event_id
from chat_app.log.deletions import without_deleted
from chat_app.log.entries import milliseconds
from chat_app.members.mentions import change_mentions, mentioned_people
from chat_app.models import ChatEvent, Message, MessageRevision
from uamp import events as ev
from uamp.blank_text import is_blank

if TYPE_CHECKING:
    from collections.abc import Sequence


def edit_message(
    *, chat_id: str, message_id: str, user_id: int | None, content: str, revision: int | None = None
) -> ev.MessageEdited:
    """Change the text of a message, which only its author may; its media stay.

    `revision` is the revision that the author edited; without it the last writer wins. Returns the
    event, without `seq` if the text did not change. Raises MessageNotFound, NotTheAuthor,
    RevisionConflict, TooManyRevisions and EmptyMessage.
    """
    with transaction.atomic():
        message = locked_message(chat_id=chat_id, message_id=message_id, user_id=user_id)
        if message.sender_user_id != user_id:
            raise NotTheAuthor
        number = message.revision or 0
        if content == message.content:
            # This also covers a repeat of the latest edit, whatever revision it was based on.
            return _event(message)
        if revision is not None and revision != number:
            raise RevisionConflict(number)
        if number >= settings.UAMP_MESSAGE_REVISIONS:
            raise TooManyRevisions
        return revise(message, content)


def revise(message: Message, content: str) -> ev.MessageEdited:
    """Change the text of a message of a locked chat; raises EmptyMessage."""
    items = _edited(message, content)
    if not items and is_blank(content):
        raise EmptyMessage
    if message.revision is None:
        _keep(message, seq=message.seq)
    message.content, message.content_items = content, msgspec.to_builtins(items)
    message.revision, message.edited_at = (message.revision or 0) + 1, timezone.now()
    message.save(update_fields=["content", "content_items", "revision", "edited_at"])
    if not message.thread_only:
        people = mentioned_people(message.chat_id, content, author=message.sender_user_id)
        change_mentions(message.chat_id, message.pk, message.seq, people)
    event = _event(message)
    seq = append_act(event)
    _keep(message, seq=seq)
    return msgspec.structs.replace(event, seq=seq)


def texts_of(revisions: Sequence[MessageRevision], chat_id: str) -> list[str]:
    """Return the texts of revisions of one chat's messages, read from its log."""
    rows = ChatEvent.objects.filter(chat_id=chat_id, seq__in=[row.seq for row in revisions])
    entries = list(rows.values_list("type", "response_id", "payload", "seq"))
    payloads = without_deleted([row[:3] for row in entries])
    texts = {
        row[3]: str(payload.get("message", payload)["content"])
        for row, payload in zip(entries, payloads, strict=True)
    }
    return [texts[row.seq] for row in revisions]


def first_revision(message: Message) -> MessageRevision:
    """Return the original text as a revision; it has a row only after an edit."""
    return MessageRevision(
        message=message,
        number=0,
        seq=message.seq,
        edited_by_id=message.sender_user_id,
        created_at=message.created_at,
    )


def _keep(message: Message, *, seq: int) -> None:
    if message.revision is None:
        first_revision(message).save()
        return
    MessageRevision.objects.create(
        message=message,
        number=message.revision,
        seq=seq,
        edited_by_id=message.sender_user_id,
        created_at=message.edited_at or message.created_at,
    )


def _edited(message: Message, content: str) -> list[uamp.ContentItem]:
    """Return a message's items with a new text in the position of the first text."""
    items = msgspec.convert(message.content_items, list[uamp.ContentItem])
    if not items:
        return []
    new_items: list[uamp.ContentItem] = []
    at = None
    for item in items:
        if not isinstance(item, uamp.TextContent):
            new_items.append(item)
        elif at is None:
            at = len(new_items)
    if content:
        new_items.insert(at or 0, uamp.TextContent(text=content))
    return new_items


def _event(message: Message) -> ev.MessageEdited:
    """Return the event of a message's latest edit, or of its original text if never edited."""
    items = msgspec.convert(message.content_items, tuple[uamp.ContentItem, ...])
    at = message.edited_at or message.created_at
    return ev.MessageEdited(
        event_id=new_event_id(),
        timestamp=milliseconds(at),
        chat_id=message.chat_id,
        message_id=message.pk,
        content=message.content,
        content_items=items or None,
        revision=message.revision or 0,
        edited_at=milliseconds(at),
        user_id=str(message.sender_user_id),
    )
