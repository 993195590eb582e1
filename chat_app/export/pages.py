"""The messages of a chat in pages by log place, for a member or for staff who may export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from chat_app.log.signatures import signatures_of, stored_hashes
from chat_app.members.membership import is_member
from chat_app.models import Chat, Message
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from chat_app.log.signatures import StoredHashes

PAGE: Final = 50
"""How many messages are in memory at once."""


class ExportStopped(Exception):
    """The reader is no longer a member, so the file ends without its last line."""


class Receipts(Protocol):
    """Looks up the costs of answers in a chat for a reader, by response id."""

    def __call__(
        self, chat_id: str, user_id: int, response_ids: Collection[str]
    ) -> Mapping[str, dict[str, Any]]:
        """Return the receipts, at most one for each id."""


class FailedAnswers(Protocol):
    """Looks up answers that failed before their first word, by the message that they answer."""

    def __call__(self, message_ids: Collection[str]) -> Mapping[str, list[dict[str, Any]]]:
        """Return the failures of those messages that have any."""


def no_failures(message_ids: Collection[str]) -> Mapping[str, list[dict[str, Any]]]:
    """Return no failures: nothing in this process answers messages."""
    del message_ids
    return {}


def pages(
    chat: Chat,
    user_id: int,
    *,
    receipts: Receipts,
    failures: FailedAnswers = no_failures,
    after: int = 0,
) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of a chat after a `seq` up to its current end, oldest first.

    An answer that cost something has its `receipt`, and a message the `failed_answers` to it that
    wrote nothing. Raises ExportStopped if the reader has left the chat.
    """
    while after < chat.last_seq:
        if not is_member(chat.pk, user_id):
            raise ExportStopped
        messages = _next(chat, after)
        if not messages:
            return
        paid = receipts(chat.pk, user_id, [row.response_id for row in messages if row.response_id])
        failed = failures([row.pk for row in messages])
        for message in (page := _plain_all(chat, messages, paid)):
            if message["id"] in failed:
                message["failed_answers"] = failed[message["id"]]
        yield page
        after = messages[-1].seq


def pages_for_staff(chat: Chat) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of a chat up to its current end, oldest first, without receipts.

    The caller has checked that the reader may export the chats of others.
    """
    messages = _next(chat, 0)
    while messages:
        yield _plain_all(chat, messages, {})
        messages = _next(chat, messages[-1].seq)


def _next(chat: Chat, after: int) -> list[Message]:
    rows = Message.objects.filter(
        chat_id=chat.pk, seq__gt=after, seq__lte=chat.last_seq, replaced_by__isnull=True
    )
    return list(rows.order_by("seq")[:PAGE])


def _plain_all(
    chat: Chat, messages: Sequence[Message], receipts: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return messages with their receipts and signatures."""
    answers = {message.response_id for message in messages if message.response_id}
    signed = signatures_of(chat.pk, answers)
    stored = stored_hashes(chat.pk, signed)
    return [
        {
            **_plain(message),
            **_present(
                version_of=message.version_of,
                # A process of the release before deletes a message without its salt.
                salt=None if message.deleted_at else message.salt,
                receipt=receipts.get(message.response_id),
                signature=signed.get(message.response_id),
                **_stored(stored.get(message.response_id)),
            ),
        }
        for message in messages
    ]


def _stored(hashes: StoredHashes | None) -> dict[str, str]:
    if hashes is None:
        return {}
    return {"stored_output_hash": hashes.output, "stored_usage_hash": hashes.usage}


def _present(**members: Any) -> dict[str, Any]:
    """Return the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def _plain(message: Message) -> dict[str, Any]:
    """Return a message in its current state; a deleted one has a place but no text."""
    return {
        "id": message.pk,
        "seq": message.seq,
        "role": message.role,
        "name": message.name,
        "sender_id": message.sender_id,
        "sender_kind": message.sender_kind,
        "digital_source_type": AI_MADE if message.sender_agent_id else None,
        "content": message.content,
        "content_items": message.content_items,
        "created_at": message.created_at,
        "response_id": message.response_id or None,
        "status": message.status,
        "reply_to": message.reply_to,
        "thread": message.thread,
        "also_in_chat": message.thread is not None and not message.thread_only,
        "copied_from": message.copied_from,
        "revision": message.revision or 0,
        "edited_at": message.edited_at,
        "deleted_at": message.deleted_at,
    }
