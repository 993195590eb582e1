"""Filters for the messages of a list request, and their parts: `fields` and `expand`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.contrib.auth.models import User
from django.db.models import Q
from rest_framework import serializers

import uamp
from chat_app.contents.references import content_ids
from chat_app.models import Content, Message, Participant
from chat_app.rest.messages.message_serializers import MessageSerializer, with_signatures
from chat_app.rest.paging import SeqQuery, wrong_parameter
from chat_app.rest.serializers import content_data

if TYPE_CHECKING:
    from collections.abc import Sequence

MEDIA: Final = ("image", "audio", "video", "file")
HAS: Final = ("file", "tool", "payment", "error")
EXPANDABLE: Final = ("attachments", "failed_answers", "payment", "response", "signature")
FILTERS: Final = frozenset(
    {
        "author",
        "author_kind",
        "agent",
        "protocol",
        "kind",
        "has",
        "created_after",
        "created_before",
        "session",
        "cost_min",
    }
)
WORDS: Final = 10
_FIELDS: Final = tuple(MessageSerializer().fields)


def choices_field(choices: Sequence[str], help_text: str) -> serializers.CharField:
    """Return a query field for a comma-separated subset of choices."""
    listed = "|".join(map(re.escape, choices))
    return serializers.RegexField(
        rf"^(?:{listed})(?:,(?:{listed}))*\Z",
        required=False,
        max_length=600,
        help_text=f"{help_text} With commas between: {', '.join(choices)}.",
        error_messages={"invalid": f"Known are {', '.join(choices)}."},
    )


class ExpandQuery(serializers.Serializer[Any]):
    """Query parameters that add parts to a message."""

    expand = choices_field(EXPANDABLE, "Additional data for each message.")
    render = serializers.ChoiceField(choices=["html"], required=False)


class FieldsQuery(ExpandQuery):
    """The parts of each message to return."""

    def get_fields(self) -> dict[str, Any]:
        """Add `fields`, which as an attribute would hide the serializer's own."""
        field = choices_field(_FIELDS, "Only these members of each message, and its id.")
        return {**super().get_fields(), "fields": field}


class MessagesQuery(FieldsQuery, SeqQuery):
    """The query parameters of GET /api/v1/chats/{id}/messages."""

    around = serializers.RegexField(
        r"^([0-9]{1,16}|msg_[A-Za-z0-9_-]{1,36})\Z",
        required=False,
        help_text="Rows on both sides of a `seq`, or of the message with an id.",
        error_messages={"invalid": "Must be a `seq` or the id of a message."},
    )
    thread = serializers.RegexField(
        r"^(none|msg_[A-Za-z0-9_-]{1,36})\Z",
        required=False,
        help_text="The replies to a message; with `none`, the messages shown in the chat itself.",
        error_messages={"invalid": "Must be the id of a message, or `none`."},
    )
    order = serializers.ChoiceField(choices=["asc", "desc"], default="desc")
    q = serializers.CharField(
        required=False,
        max_length=500,
        help_text=f"At most {WORDS} words, which a message must all have; the newest first.",
    )
    author = serializers.CharField(
        required=False, max_length=150, help_text="Messages of the person with this id or username."
    )
    author_kind = serializers.ChoiceField(choices=["user", "agent"], required=False)
    agent = serializers.CharField(
        required=False, max_length=100, help_text="Messages of the agent with this name."
    )
    protocol = serializers.CharField(
        required=False, max_length=24, help_text="Messages with this `transport`."
    )
    kind = serializers.ChoiceField(
        choices=["text", *MEDIA],
        required=False,
        help_text="Messages with text, or with media of this kind.",
    )
    has = choices_field(HAS, "Messages with all of these.")
    created_after = serializers.DateTimeField(required=False)
    created_before = serializers.DateTimeField(required=False)
    session = serializers.RegexField(
        r"^[A-Za-z0-9._-]{1,64}\Z",
        required=False,
        help_text="Messages sent in a session of the caller, and the answers that it requested.",
        error_messages={"invalid": "Must be the id of a session."},
    )
    cost_min = serializers.RegexField(
        r"^[0-9]{1,9}(?:\.[0-9]{1,6})?\Z",
        required=False,
        help_text="Answers that cost at least this amount, a decimal string in USD.",
        error_messages={"invalid": 'Write it as "0.05", with six places at most.'},
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse parameters that contradict each other."""
        narrowed = FILTERS.intersection(attrs) or "q" in attrs
        if "around" in attrs and ({"before", "after"} & set(attrs) or narrowed):
            raise serializers.ValidationError(
                {"around": "Not together with before, after, a filter or q."}
            )
        if "q" in attrs:
            if attrs["order"] == "asc":
                raise serializers.ValidationError(
                    {"order": "Search results are always newest first."}
                )
            words = attrs["q"].replace("\0", " ").split()
            if not 0 < len(words) <= WORDS:
                raise serializers.ValidationError({"q": f"Search for 1 to {WORDS} words."})
            attrs["words"] = words
        return attrs


def conditions(query: dict[str, Any], chat_id: str) -> Q:
    """Return the condition for those filters of a query that concern a message's own row.

    Raises Problem for an author or an agent that the chat does not have.
    """
    condition = Q()
    if "author" in query:
        condition &= Q(sender_user__in=_authors(query["author"], chat_id))
    if "author_kind" in query:
        condition &= Q(sender_agent__isnull=query["author_kind"] == "user")
    if "agent" in query:
        condition &= Q(sender_agent__in=_agents(query["agent"], chat_id))
    if "protocol" in query:
        condition &= Q(transport=query["protocol"])
    if "kind" in query:
        condition &= ~Q(content="") if query["kind"] == "text" else has_item(query["kind"])
    has = query.get("has", "").split(",")
    if "file" in has:
        condition &= has_item(*MEDIA)
    if "error" in has:
        condition &= Q(status="failed")
    if "created_after" in query:
        condition &= Q(created_at__gte=query["created_after"])
    if "created_before" in query:
        condition &= Q(created_at__lt=query["created_before"])
    return condition


def has_item(*kinds: str) -> Q:
    """Return the condition that a message has a content item of one of these types."""
    return Q(content_items__regex=rf'"type": ?"({"|".join(kinds)})"')


def _agents(name: str, chat_id: str) -> Any:
    """Return the id of a chat's agent of this name; raises Problem if it has none."""
    agents = Participant.objects.filter(chat_id=chat_id, agent__name__iexact=name)
    if not agents.exists():
        raise wrong_parameter("agent", "The chat has no agent with this name.")
    return agents.values("agent_id")


def _authors(author: str, chat_id: str) -> Any:
    """Return the ids of a person of a chat; raises Problem if the chat does not have them.

    People elsewhere on the server get the same answer as names that do not exist.
    """
    named = Q(username__iexact=author)
    if author.isascii() and author.isdecimal() and len(author) <= 18:  # noqa: PLR2004 digits of an id
        named |= Q(pk=int(author))
    people = User.objects.filter(named).values("pk")
    in_chat = {"chat_id": chat_id}
    if not (
        Participant.objects.filter(user__in=people, **in_chat).exists()
        or Message.objects.filter(sender_user__in=people, **in_chat).exists()
    ):
        raise wrong_parameter("author", "The chat has no person with this id or username.")
    return people


def with_attachments(data: Sequence[dict[str, Any]], *, user_id: int | None) -> None:
    """Add `attachments` to messages that their reader may read."""
    ids_by_message = {
        row["id"]: content_ids(msgspec.convert(row["content_items"], tuple[uamp.ContentItem, ...]))
        for row in data
    }
    every = {content_id for ids in ids_by_message.values() for content_id in ids}
    # Contents that a chat does not show are off-limits to its members, whatever a message links to.
    used = Content.objects.filter(pk__in=every, uses__chat__in={row["chat_id"] for row in data})
    rows = {str(row.pk): content_data(row, user_id=user_id) for row in used.distinct()}
    for row in data:
        row["attachments"] = [
            rows[content_id] for content_id in ids_by_message[row["id"]] if content_id in rows
        ]


def expand(data: list[dict[str, Any]], query: dict[str, Any], reader: int) -> None:
    """Add to messages what `expand` names and this app knows."""
    names = query.get("expand", "").split(",")
    if "attachments" in names:
        with_attachments(data, user_id=reader)
    if "signature" in names:
        with_signatures(data)


def selected_fields(data: Sequence[dict[str, Any]], query: dict[str, Any]) -> list[dict[str, Any]]:
    """Return only the requested members of each message, and its id."""
    if "fields" not in query:
        return list(data)
    names = {"id", *query["fields"].split(","), *query.get("expand", "").split(",")}
    return [{name: value for name, value in row.items() if name in names} for row in data]
