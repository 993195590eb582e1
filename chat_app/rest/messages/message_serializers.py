"""Serializers of messages, reactions, receipts and log entries in REST (docs/rest.md).

Times are ISO 8601 in UTC here; the UAMP wire has milliseconds (UAMP §4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models.functions import Substr
from rest_framework import serializers

from agents_app.rest.strict import StrictSerializer
from agents_app.workers import connections
from chat_app import markdown
from chat_app.conversation.pins import pinned_among
from chat_app.conversation.reactions import reactions_of
from chat_app.conversation.threads import threads_of
from chat_app.log.history import QUOTE_CHARS
from chat_app.log.signatures import signatures_of, stored_hashes
from chat_app.models import EMOJI_CHARS, Message
from chat_app.rest.paging import SEQ_MAX
from chat_app.rest.uamp_types import ErrorSerializer, ReferenceField, UampField
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.models import MessageRevision, Reaction, ReadReceipt


class MemberNameSerializer(serializers.Serializer[Any]):
    """A person by id and name."""

    id = serializers.CharField()
    name = serializers.CharField()


class ReactionSerializer(serializers.Serializer[Any]):
    """An emoji, how many members gave it to the message, and whether the caller did."""

    emoji = serializers.CharField()
    count = serializers.IntegerField()
    own = serializers.BooleanField()
    users = MemberNameSerializer(many=True, help_text="The first 20 members who added it.")


class ReactorSerializer(serializers.Serializer[Any]):
    """A member's reaction."""

    id = serializers.CharField()
    emoji = serializers.CharField()
    user_id = serializers.CharField()
    username = serializers.CharField()
    created_at = serializers.DateTimeField()


class QuotedSerializer(serializers.Serializer[Any]):
    """The message that another one replies to, with the beginning of its text."""

    id = serializers.CharField()
    name = serializers.CharField()
    content = serializers.CharField()


class FaceSerializer(serializers.Serializer[Any]):
    """A person or agent who replied, under their name at the time."""

    kind = serializers.CharField(help_text="user or agent")
    id = serializers.CharField()
    name = serializers.CharField()


class ThreadSerializer(serializers.Serializer[Any]):
    """The replies to a message, for the caller."""

    replies = serializers.IntegerField()
    last_at = serializers.DateTimeField()
    last_seq = serializers.IntegerField()
    participants = FaceSerializer(many=True, help_text="The five members who replied last.")
    following = serializers.BooleanField(
        help_text="Whether the caller wrote the message or a reply, or was mentioned in one."
    )
    read_seq = serializers.IntegerField(help_text="How far a follower has read it.")


class FailedAnswerSerializer(serializers.Serializer[Any]):
    """An answer that failed or was cancelled before its first word, and is not a message."""

    response_id = serializers.CharField()
    agent = serializers.CharField()
    status = serializers.ChoiceField(choices=["failed", "cancelled"])
    error = ErrorSerializer(allow_null=True)
    ended_at = serializers.DateTimeField()


class MessageSerializer(serializers.Serializer[Any]):
    """A message (UAMP §8.5); `html` is set with `render=html`."""

    id = serializers.CharField()
    chat_id = serializers.CharField()
    seq = serializers.IntegerField()
    role = serializers.CharField()
    content = serializers.CharField()
    content_items = serializers.ListField(child=UampField("ContentItem"))
    name = serializers.CharField()
    sender_id = serializers.CharField()
    sender_kind = serializers.CharField(help_text="user or agent")
    digital_source_type = serializers.CharField(
        allow_null=True,
        help_text="Marks an agent's message as made by AI, with a term of IPTC; null for people's.",
    )
    created_at = serializers.DateTimeField()
    response_id = serializers.CharField(allow_null=True)
    status = serializers.CharField(help_text="completed, cancelled or failed")
    transport = serializers.CharField(
        help_text="How it was sent: websocket, sse, batch, completions, a2a, ...; empty if unknown."
    )
    reply_to = QuotedSerializer(allow_null=True)
    version_of = serializers.CharField(
        allow_null=True, help_text="The first version of a regenerated answer."
    )
    replaced_by = serializers.CharField(allow_null=True, help_text="The version that replaced it.")
    thread = serializers.CharField(
        allow_null=True, help_text="The message to whose thread it belongs."
    )
    also_in_chat = serializers.BooleanField(help_text="Whether a reply is shown in the chat too.")
    copied_from = serializers.CharField(
        allow_null=True, help_text="In a fork: the message of the source that it was copied from."
    )
    replies = ThreadSerializer(allow_null=True)
    revision = serializers.IntegerField(help_text="How often it was edited.")
    edited_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(
        allow_null=True, help_text="A deleted message has neither text nor content items."
    )
    salt = serializers.CharField(
        allow_null=True,
        help_text="Random; `request_hash` of the answer's signature covers it. Null if deleted.",
    )
    reactions = ReactionSerializer(many=True)
    pinned = serializers.BooleanField()
    html = serializers.CharField(required=False)
    attachments = serializers.ListField(
        child=ReferenceField("Content"),
        required=False,
        help_text="With `expand=attachments`: its stored files as `GET /contents/{id}` has them.",
    )
    payment = ReferenceField(
        "PaymentReceipt",
        required=False,
        allow_null=True,
        help_text="With `expand=payment`: what the answer cost, as `…/payments` has it.",
    )
    signature = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="With `expand=signature`: the JWS of the answer, null for one without.",
    )
    stored_output_hash = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="With `expand=signature`: the `output_hash` of the stored response.",
    )
    stored_usage_hash = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="With `expand=signature`: the `usage_hash` of the stored response.",
    )
    response = ReferenceField(
        "Response",
        required=False,
        allow_null=True,
        help_text="With `expand=response`: the response that produced it.",
    )
    failed_answers = FailedAnswerSerializer(
        many=True,
        required=False,
        help_text="With `expand=failed_answers`: answers that failed before their first word.",
    )


class RevisionSerializer(serializers.Serializer[Any]):
    """A former text of a message; revision 0 is the original."""

    revision = serializers.IntegerField()
    seq = serializers.IntegerField(help_text="Its entry in the log.")
    content = serializers.CharField()
    edited_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class ReceiptSerializer(serializers.Serializer[Any]):
    """How far a member has read."""

    user_id = serializers.CharField()
    username = serializers.CharField()
    message_id = serializers.CharField()
    seq = serializers.IntegerField()
    read_at = serializers.DateTimeField()


def messages_data(
    messages: Sequence[Message], *, html: bool, reader: int, until: float | None = None
) -> list[dict[str, Any]]:
    """Return messages for a reader, as described by MessageSerializer.

    Text that is not rendered before `until` is shown as plain text (`markdown.render`). The number
    of queries does not depend on the number of messages.
    """
    ids = [message.pk for message in messages]
    reactions, pinned = reactions_of(ids, reader), pinned_among(ids)
    threads = threads_of([_root_id(message) for message in messages], reader)
    answered = _answered(messages)
    return [
        {
            **_message_data(message, html=html, reader=reader, until=until),
            "reactions": reactions.get(message.pk, []),
            "pinned": message.pk in pinned,
            "reply_to": answered.get((message.chat_id, message.reply_to or "")),
            "replies": threads.get(_root_id(message)),
        }
        for message in messages
    ]


def with_signatures(data: list[dict[str, Any]]) -> None:
    """Add signatures and the hashes of stored responses to messages of one chat, or None."""
    answers = {row["response_id"] for row in data if row["response_id"]}
    signatures = signatures_of(data[0]["chat_id"], answers) if answers else {}
    stored = stored_hashes(data[0]["chat_id"], signatures) if signatures else {}
    for row in data:
        hashes = stored.get(row["response_id"])
        row["signature"] = signatures.get(row["response_id"])
        row["stored_output_hash"] = None if hashes is None else hashes.output
        row["stored_usage_hash"] = None if hashes is None else hashes.usage


def message_data(message_id: str, *, reader: int) -> dict[str, Any]:
    """Return a message that the reader may read, as described by MessageSerializer."""
    message = Message.objects.get(pk=message_id)
    return messages_data([message], html=False, reader=reader)[0]


def _root_id(message: Message) -> str:
    """Return the id by which replies name a message: that of its first version."""
    return message.version_of or message.pk


def _answered(messages: Sequence[Message]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the messages that others reply to, by chat and id; a deleted one has no text.

    Those of other chats are left out: a server that is the home of a chat chooses what its messages
    reply to.
    """
    named = {(message.chat_id, message.reply_to) for message in messages if message.reply_to}
    if not named:
        return {}
    start = Substr("content", 1, QUOTE_CHARS)
    chats, ids = zip(*named, strict=True)
    rows = Message.objects.filter(pk__in=ids, chat_id__in=chats)
    return {
        (chat_id, pk): {"id": pk, "name": name, "content": text}
        for chat_id, pk, name, text in rows.values_list("chat_id", "pk", "name", start)
        if (chat_id, pk) in named
    }


def reactor_data(reaction: Reaction) -> dict[str, Any]:
    """Return a reaction as described by ReactorSerializer."""
    return {
        "id": str(reaction.pk),
        "emoji": reaction.emoji,
        "user_id": str(reaction.user_id),
        "username": reaction.user.get_username(),
        "created_at": reaction.created_at,
    }


def _message_data(
    message: Message, *, html: bool, reader: int, until: float | None
) -> dict[str, Any]:
    data = {
        "id": message.pk,
        "chat_id": message.chat_id,
        "seq": message.seq,
        "role": message.role,
        "content": message.content,
        "content_items": message.content_items,
        "name": message.name,
        "sender_id": message.sender_id,
        "sender_kind": message.sender_kind,
        "digital_source_type": AI_MADE if message.sender_agent_id else None,
        "created_at": message.created_at,
        "response_id": message.response_id or None,
        "status": message.status,
        "transport": message.transport,
        "version_of": message.version_of,
        "replaced_by": message.replaced_by,
        "thread": message.thread,
        "also_in_chat": message.thread is not None and not message.thread_only,
        "copied_from": message.copied_from,
        "revision": message.revision or 0,
        "edited_at": message.edited_at,
        "deleted_at": message.deleted_at,
        # A process of the release before deletes a message without its salt.
        "salt": None if message.deleted_at else message.salt,
    }
    if html:
        # Others may need the connection while this thread waits for a process.
        connections.release()
        data["html"] = markdown.render(message.content, asker=f"user:{reader}", until=until)
    return data


def revision_data(revision: MessageRevision, text: str) -> dict[str, Any]:
    """Return a revision as described by RevisionSerializer."""
    edited_by = revision.edited_by_id
    return {
        "revision": revision.number,
        "seq": revision.seq,
        "content": text,
        "edited_by": None if edited_by is None else str(edited_by),
        "created_at": revision.created_at,
    }


def receipt_data(receipt: ReadReceipt) -> dict[str, Any]:
    """Return a marker as described by ReceiptSerializer."""
    return {
        "user_id": str(receipt.user_id),
        "username": receipt.user.get_username(),
        "message_id": receipt.message_id,
        "seq": receipt.seq,
        "read_at": receipt.read_at,
    }


class ReactionQuery(serializers.Serializer[Any]):
    """The query parameters of PUT and DELETE /api/v1/messages/{id}/reactions."""

    emoji = serializers.CharField(max_length=EMOJI_CHARS)


class MessageEditSerializer(StrictSerializer):
    """The body of PATCH /api/v1/messages/{id}: the whole new text, at most UAMP_MESSAGE_BYTES.

    `revision` is the revision being edited; without it the last writer wins.
    """

    content = serializers.CharField(allow_blank=True, trim_whitespace=False)
    revision = serializers.IntegerField(min_value=0, max_value=SEQ_MAX, required=False)

    def validate_content(self, content: str) -> str:
        """Refuse a text that is too long for a message."""
        if len(content.encode()) > settings.UAMP_MESSAGE_BYTES:
            raise serializers.ValidationError(
                f"The text may have at most {settings.UAMP_MESSAGE_BYTES} bytes."
            )
        return content
