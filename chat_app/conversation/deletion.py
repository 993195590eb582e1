"""The deletion of messages: they keep their place in the log but lose their text and media.

Synchronous. Log entries stay as written (`chat_app.log.deletions` leaves out the deleted bodies);
the row loses its text, so it no longer reaches any history, search or agent.
"""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

import uamp
from chat_app.contents import references
from chat_app.conversation.errors import NotTheAuthor
from chat_app.conversation.messages import append_act, locked_message
from chat_app.conversation.taken_files import finish_taken, withdraw_taken
from chat_app.conversation.threads import uncount_reply
from chat_app.ids import new_event_id
from chat_app.log.entries import lock_chats, milliseconds
from chat_app.log.retention import delete_unused
from chat_app.members import avatars
from chat_app.members.membership import is_owner
from chat_app.members.mentions import forget_mentions
from chat_app.models import Chat, ContentUse, Message, MessageDeletion, Pin, Reaction
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


COPIES_AFTER: Final = timedelta(minutes=1)
"""When to look again for copies of a deleted message: forks that had begun have ended by then."""


class DelegatedWork(NamedTuple):
    """Another agent's response for a message: its chat, and the message that is its task."""

    chat_id: str
    message_id: str | None
    response_id: str


def _no_work(_message_id: str, _response_id: str | None) -> Iterable[DelegatedWork]:
    return ()


_delegated: Callable[[str, str | None], Iterable[DelegatedWork]] = _no_work


def delegations_by(find: Callable[[str, str | None], Iterable[DelegatedWork]]) -> None:
    """Set the function that finds the work delegated for a message, or by the response it shows."""
    global _delegated  # noqa: PLW0603 one for the process
    _delegated = find


def delete_message(*, chat_id: str, message_id: str, user_id: int | None) -> ev.MessageDeleted:
    """Delete a message on behalf of its author or an owner of the chat.

    Members lose access to contents that no other message of the chat shows, except the chat's
    picture. Work that other agents did for the message, in chats of its asker, is deleted too.
    Returns the event, without `seq` if the message was already deleted. Raises MessageNotFound and
    NotTheAuthor.
    """
    with transaction.atomic():
        message = locked_message(
            chat_id=chat_id, message_id=message_id, user_id=user_id, deleted=True
        )
        if message.sender_user_id != user_id and not is_owner(chat_id, user_id):
            raise NotTheAuthor
        deletion = MessageDeletion.objects.filter(pk=message_id).first()
        if deletion is not None:
            return _event(deletion, message)
        return _delete(message, user_id)


def delete_messages_of(user_id: int, *, chat_id: str) -> int:
    """Delete everything a person wrote in a chat, member or not; return the number of messages.

    Used to erase a person.
    """
    with transaction.atomic():
        lock_chats([chat_id])
        written = list(
            Message.objects.filter(
                chat_id=chat_id, sender_user_id=user_id, deleted_at__isnull=True
            ).order_by("seq")
        )
        for message in written:
            _delete(message, user_id)
    return len(written)


def delete_in_mirror(message: Message) -> None:
    """Delete a message of a locked mirror, for its home."""
    _delete(message, None)


def delete_old(chat: Chat, messages: Iterable[Message]) -> int:
    """Delete old messages of a locked chat; return how many were not deleted before.

    The chat keeps its position in lists, since this is not activity.
    """
    count = 0
    for message in messages:
        if message.deleted_at is None:
            _delete(message, None)
            count += 1
    if count:
        Chat.objects.filter(pk=chat.pk).update(latest_at=chat.latest_at)
    return count


def delete_work(chat_id: str, *, message_id: str | None, response_id: str) -> None:
    """Delete the task and the answer of work whose message was deleted while it was running.

    The transaction that ends the work holds the lock of its chat. Work that was delegated further
    ends, and is deleted, separately.
    """
    condition = Q(pk=message_id) | Q(response_id=response_id)
    for message in Message.objects.filter(condition, chat_id=chat_id, deleted_at__isnull=True):
        _withhold(message, None)


def _delete(message: Message, user_id: int | None) -> ev.MessageDeleted:
    """Delete a message of a locked chat, and the tasks and answers of agents that worked for it."""
    event = _withhold(message, user_id)
    for work in _delegated(message.pk, message.response_id):
        _delete_work(work, user_id)
    return event


def _withhold(message: Message, user_id: int | None) -> ev.MessageDeleted:
    """Delete a message of a locked chat."""
    now = timezone.now()
    deletion = MessageDeletion.objects.create(
        message=message,
        chat_id=message.chat_id,
        response_id=message.response_id,
        deleted_by_id=user_id,
        deleted_at=now,
    )
    items = msgspec.convert(message.content_items, tuple[uamp.ContentItem, ...])
    message.content, message.content_items, message.deleted_at = "", [], now
    message.salt = None
    message.save(update_fields=["content", "content_items", "deleted_at", "salt"])
    Reaction.objects.filter(message=message).delete()
    Pin.objects.filter(message=message).delete()
    _withdraw(message.chat_id, references.content_ids(items))
    forget_mentions(message.pk)
    uncount_reply(message)
    event = _event(deletion, message)
    # Copies are in other chats, whose locks are never held together with this one's.
    transaction.on_commit(partial(delete_copies, message.pk), robust=True)
    return msgspec.structs.replace(event, seq=append_act(event))


def delete_copies(message_id: str) -> int:
    """Delete the copies of a deleted message in forks, and copies of those; return how many.

    Forks do not reveal who deleted the original.
    """
    copies = Message.objects.filter(copied_from=message_id, deleted_at__isnull=True)
    count = 0
    for chat_id, copy_id in list(copies.values_list("chat_id", "pk")):
        with transaction.atomic():
            lock_chats([chat_id])
            copy = copies.filter(pk=copy_id).first()
            if copy is not None:
                _withhold(copy, None)
                count += 1
    return count


def finish_copies(chat_ids: Collection[str]) -> None:
    """Delete the copies of messages that were deleted in chats whose rows are about to go.

    Needs their transaction: no row would tell a later sweep of these deletions. A copy's chat is
    locked together with chats that no one can use any more.
    """
    deleted = Message.objects.filter(chat_id__in=chat_ids, deleted_at__isnull=False)
    copies = Message.objects.filter(
        copied_from__isnull=False, copied_from__in=deleted.values("pk"), deleted_at__isnull=True
    ).exclude(chat_id__in=chat_ids)
    for message_id in {
        str(original_id) for original_id in copies.values_list("copied_from", flat=True)
    }:
        delete_copies(message_id)


def delete_left_copies(limit: int) -> int:
    """Look once more for copies of deleted messages, which a process left behind when it died.

    Also withdraws their files from chats that took them. Returns the number of deletions whose
    copies are certainly gone.
    """
    rows = MessageDeletion.objects.filter(
        copies_deleted=False, deleted_at__lte=timezone.now() - COPIES_AFTER
    )
    deletions = dict(rows.order_by("deleted_at").values_list("pk", "chat_id")[:limit])
    if not deletions:
        return 0
    for message_id in deletions:
        delete_copies(message_id)
    finish_taken(set(deletions.values()))
    return rows.filter(pk__in=list(deletions)).update(copies_deleted=True)


def _delete_work(work: DelegatedWork, user_id: int | None) -> None:
    """Delete the task and the answer of another agent, in the chat in which it worked."""
    lock_chats([work.chat_id])
    condition = Q(pk=work.message_id) | Q(response_id=work.response_id)
    for message in Message.objects.filter(condition, chat_id=work.chat_id, deleted_at__isnull=True):
        _delete(message, user_id)


def _event(deletion: MessageDeletion, message: Message) -> ev.MessageDeleted:
    at = milliseconds(deletion.deleted_at)
    return ev.MessageDeleted(
        event_id=new_event_id(),
        timestamp=at,
        chat_id=deletion.chat_id,
        message_id=deletion.pk,
        deleted_at=at,
        user_id="" if deletion.deleted_by_id is None else str(deletion.deleted_by_id),
        thread=message.thread,
    )


def _withdraw(chat_id: str, content_ids: Iterable[str]) -> None:
    """Revoke the members' access to contents that messages of the chat no longer show.

    Chats that took them from this one lose them too.
    """
    gone = {uuid.UUID(content_id) for content_id in content_ids}
    uses = ContentUse.objects.filter(chat_id=chat_id, content_id__in=gone)
    counted = dict(uses.values_list("content_id", "shown_by"))
    unknown = {content_id for content_id, count in counted.items() if count is None}
    if unknown:
        _count(chat_id, unknown)
    uses.exclude(content_id__in=unknown).update(shown_by=F("shown_by") - 1)
    unused = uses.filter(shown_by__lte=0)
    if (picture := avatars.picture_of(chat_id)) is not None:
        unused = unused.exclude(content_id=picture)
    withdrawn = list(unused.values_list("content_id", flat=True))
    unused.delete()
    delete_unused(withdrawn)
    if withdrawn:
        transaction.on_commit(partial(withdraw_taken, withdrawn), robust=True)


def _count(chat_id: str, content_ids: set[uuid.UUID]) -> None:
    """Count the messages that show contents whose rows are older than the counter."""
    counts: Counter[uuid.UUID] = Counter()
    rows = Message.objects.filter(chat_id=chat_id, deleted_at__isnull=True)
    for raw_items in (
        rows.exclude(content_items=[]).values_list("content_items", flat=True).iterator()
    ):
        items = msgspec.convert(raw_items, tuple[uamp.ContentItem, ...])
        counts.update({uuid.UUID(text) for text in references.content_ids(items)} & content_ids)
    for content_id in content_ids:
        use = ContentUse.objects.filter(chat_id=chat_id, content_id=content_id)
        use.update(shown_by=counts[content_id])
