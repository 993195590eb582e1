"""Serializers of agents, chats and contents in REST, out and in (docs/rest.md).

Times are ISO 8601 in UTC here; the UAMP wire has milliseconds (UAMP §4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from rest_framework import serializers

from agents_app.rest.strict import StrictSerializer
from chat_app.contents import addresses, references
from chat_app.models import (
    ChatBudgetPeriod,
    ContextScope,
    NotificationLevel,
    ParticipantReplyTrigger,
    ParticipantRole,
    PayerRule,
)
from chat_app.rest.paging import ListQuery
from chat_app.rest.uamp_types import UampField

if TYPE_CHECKING:
    from chat_app.models import Content

TITLE_CHARS: Final = 200
NAME_CHARS: Final = 150
USERS_MAX: Final = 100
AGENTS_MAX: Final = 20
RENDER_BYTES: Final = 64 * 1024
DESCRIPTION_CHARS: Final = 2000
HOPS_MAX: Final = 20


class BudgetField(serializers.RegexField):
    """A decimal amount of money with at most nine places; an empty string removes the budget."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            r"\A(?:(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?)?\Z",
            max_length=20,
            allow_blank=True,
            error_messages={"invalid": 'Write it as "2.50", with nine places at most.'},
            **options,
        )


# --- Out ---


class PricingSerializer(serializers.Serializer[Any]):
    """The prices of an agent, as decimal strings in `currency`: an answer, 1000 tokens, a tool."""

    currency = serializers.CharField()
    per_answer = serializers.CharField()
    input_per_1k = serializers.CharField()
    output_per_1k = serializers.CharField()
    cache_read_per_1k = serializers.CharField(allow_null=True)
    cache_write_per_1k = serializers.CharField(allow_null=True)
    tools = serializers.DictField(child=serializers.CharField())
    unfinished = serializers.CharField(
        help_text="What a stopped answer costs of per_answer: whole, or share of expected_tokens."
    )
    expected_tokens = serializers.IntegerField(allow_null=True)


class AgentSerializer(serializers.Serializer[Any]):
    """An agent that the caller may use; `pricing` is null for one that is free."""

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    pricing = PricingSerializer(allow_null=True)


class ParticipantSerializer(serializers.Serializer[Any]):
    """A member of a chat; `id` is the person's or agent's, `participant_id` the membership's."""

    participant_id = serializers.IntegerField()
    kind = serializers.CharField(help_text="user or agent")
    id = serializers.CharField()
    name = serializers.CharField()
    role = serializers.CharField(help_text="owner, admin or member")
    joined_at = serializers.DateTimeField()
    trigger = serializers.CharField(
        required=False, help_text="When an agent answers: mention, always, keyword or never."
    )
    keywords = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="The keywords of the trigger `keyword`.",
    )
    context = serializers.CharField(  # type: ignore[assignment]  # its name on the wire
        required=False, help_text="What an agent sees: chat, last or addressed."
    )
    context_messages = serializers.IntegerField(required=False, allow_null=True)
    budget = serializers.CharField(
        required=False, allow_null=True, help_text="The budget of its answers here, in `currency`."
    )
    budget_period = serializers.CharField(required=False, allow_null=True, help_text="day or total")
    online = serializers.BooleanField(
        required=False,
        help_text="Whether a person has a page or program open, or an agent is switched on.",
    )
    display_name = serializers.CharField(
        required=False, help_text="Of a person; empty if the username is shown."
    )
    status_text = serializers.CharField(required=False)
    avatar_emoji = serializers.CharField(required=False)
    avatar_colour = serializers.CharField(required=False)
    avatar_url = serializers.CharField(required=False, allow_null=True)
    pricing = PricingSerializer(required=False, allow_null=True)
    takes_calls = serializers.BooleanField(
        required=False,
        help_text="Of an agent: whether its model supports speech, so that it can join a call."
        " False for a person of another server, whom calls do not reach.",
    )


class PreviewSerializer(serializers.Serializer[Any]):
    """The beginning of a chat's last message."""

    name = serializers.CharField()
    content = serializers.CharField()


class OriginSerializer(serializers.Serializer[Any]):
    """The origin of a forked chat; `seq` is the log entry after the copied messages."""

    chat_id = serializers.CharField(allow_null=True, help_text="Null if it was deleted.")
    message_id = serializers.CharField()
    title = serializers.CharField(help_text="The title of the source at the time.")
    messages = serializers.IntegerField(help_text="The number of copied messages.")
    seq = serializers.IntegerField()
    agents_left_out = serializers.ListField(
        child=serializers.CharField(),
        help_text="Agents of the source that the person who forked it may not use.",
    )
    forked_by = serializers.CharField(allow_null=True)
    forked_at = serializers.DateTimeField()
    readable = serializers.BooleanField(help_text="Whether the caller is in the source.")


class ChatSerializer(serializers.Serializer[Any]):
    """A chat as one member sees it; `unread` stops counting at 100."""

    id = serializers.CharField()
    title = serializers.CharField()
    kind = serializers.CharField(help_text="group or session")
    home = serializers.CharField(
        allow_null=True, help_text="The server that owns the chat's log, if it is not this one."
    )
    payer = serializers.CharField(help_text="The payer: asker, owner, pool, or sponsor.")
    only_owners_pin = serializers.BooleanField(help_text="Otherwise all members pin messages.")
    description = serializers.CharField()
    avatar = serializers.CharField(
        allow_null=True, help_text="An emoji, a colour as #rrggbb, or content:<id> of a picture."
    )
    avatar_url = serializers.CharField(allow_null=True, help_text="Of a picture.")
    agents_quiet = serializers.BooleanField(help_text="Whether the agents are paused.")
    agent_hops = serializers.IntegerField(help_text="How often in a row agents may ask each other.")
    budget = serializers.CharField(
        allow_null=True, help_text="The budget of the answers of all agents."
    )
    budget_period = serializers.CharField(allow_null=True, help_text="day or total")
    role = serializers.CharField(help_text="The caller's: owner, admin or member.")
    rights = serializers.ListField(
        child=serializers.CharField(), help_text="What the caller may do (docs/members.md)."
    )
    muted = serializers.BooleanField(help_text="Whether the caller muted the chat.")
    pinned = serializers.BooleanField(help_text="Whether the caller pinned it in their list.")
    archived = serializers.BooleanField(
        help_text="Whether the caller archived it, and nothing happened in it since."
    )
    marked_unread = serializers.BooleanField(help_text="Whether the caller marked it as unread.")
    notifications = serializers.CharField(
        help_text="The caller's for this chat: all, mentions or none; empty for their settings'."
    )
    created_at = serializers.DateTimeField()
    latest_at = serializers.DateTimeField()
    last_seq = serializers.IntegerField()
    epoch = serializers.CharField()
    unread = serializers.IntegerField()
    unread_replies = serializers.IntegerField(
        help_text="In threads that the caller follows, counted up to 100."
    )
    unread_mentions = serializers.IntegerField(
        help_text="Unread messages that mention the caller, counted up to 100."
    )
    forked_from = OriginSerializer(allow_null=True)
    preview = PreviewSerializer(allow_null=True)
    participants = ParticipantSerializer(many=True)


class ContentSerializer(serializers.Serializer[Any]):
    """A stored file; `item` is the content item that refers to it (UAMP §8.4.2)."""

    content_id = serializers.UUIDField()
    url = serializers.CharField()
    signed_url = serializers.CharField(
        help_text="Readable by any client for a while (15 minutes), as long as you may read it."
    )
    mime_type = serializers.CharField()
    size_bytes = serializers.IntegerField()
    filename = serializers.CharField()
    sha256 = serializers.CharField()
    created_at = serializers.DateTimeField()
    item = UampField("ContentItem")


class HtmlSerializer(serializers.Serializer[Any]):
    """Rendered text, safe to insert into a page of this server."""

    html = serializers.CharField()


def content_data(content: Content, *, user_id: int | None) -> dict[str, Any]:
    """Return a content for a person, as described by ContentSerializer."""
    return {
        "content_id": content.pk,
        "url": addresses.content_url(content.pk),
        "signed_url": addresses.signed_url(content.pk, addresses.ContentReader(user_id=user_id)),
        "mime_type": content.mime_type,
        "size_bytes": content.size_bytes,
        "filename": content.filename,
        "sha256": content.sha256,
        "created_at": content.created_at,
        "item": msgspec.to_builtins(references.item_of(content)),
    }


# --- In ---


class NewChatSerializer(StrictSerializer):
    """The body of POST /api/v1/chats: people and agents by name; the caller is always a member.

    A person of another server, `name@host`, is invited.
    """

    title = serializers.CharField(
        max_length=TITLE_CHARS, required=False, default="", allow_blank=True
    )
    users = serializers.ListField(
        child=serializers.CharField(max_length=NAME_CHARS), max_length=USERS_MAX, default=list
    )
    agents = serializers.ListField(
        child=serializers.CharField(max_length=NAME_CHARS), max_length=AGENTS_MAX, default=list
    )


class NewForkSerializer(StrictSerializer):
    """The body of POST /api/v1/chats/{id}/forks: the last message of the copied history."""

    message_id = serializers.RegexField(r"\A[A-Za-z0-9_-]{1,40}\Z")
    title = serializers.CharField(max_length=TITLE_CHARS, required=False, allow_blank=True)


class ChatChangeSerializer(StrictSerializer):
    """The body of PATCH /api/v1/chats/{id}: the fields to change."""

    title = serializers.CharField(max_length=TITLE_CHARS, required=False, allow_blank=True)
    payer = serializers.ChoiceField(choices=PayerRule.choices, required=False)
    only_owners_pin = serializers.BooleanField(required=False)
    description = serializers.CharField(
        max_length=DESCRIPTION_CHARS, required=False, allow_blank=True
    )
    avatar = serializers.CharField(max_length=80, required=False, allow_blank=True)
    agents_quiet = serializers.BooleanField(required=False)
    agent_hops = serializers.IntegerField(required=False, min_value=0, max_value=HOPS_MAX)
    budget = BudgetField(required=False)
    budget_period = serializers.ChoiceField(choices=ChatBudgetPeriod.choices, required=False)


class ParticipantChangeSerializer(StrictSerializer):
    """The body of PATCH /api/v1/chats/{id}/participants/{id}: a role, or how an agent answers."""

    role = serializers.ChoiceField(choices=ParticipantRole.choices, required=False)
    trigger = serializers.ChoiceField(choices=ParticipantReplyTrigger.choices, required=False)
    keywords = serializers.ListField(
        child=serializers.CharField(max_length=60), max_length=20, required=False
    )
    context = serializers.ChoiceField(  # type: ignore[assignment]  # as above
        choices=ContextScope.choices, required=False
    )
    context_messages = serializers.IntegerField(required=False, min_value=1, max_value=1000)
    budget = BudgetField(required=False)
    budget_period = serializers.ChoiceField(choices=ChatBudgetPeriod.choices, required=False)


class MuteSerializer(StrictSerializer):
    """The body of PUT /api/v1/chats/{id}/mute: at least one field."""

    muted = serializers.BooleanField(required=False)
    notifications = serializers.ChoiceField(
        choices=NotificationLevel.choices, required=False, allow_blank=True
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a body that changes nothing."""
        attrs = super().validate(attrs)
        if not attrs:
            raise serializers.ValidationError("Send muted, notifications or both.")
        return attrs


class PlaceSerializer(StrictSerializer):
    """The body of PUT /api/v1/chats/{id}/place: at least one field."""

    pinned = serializers.BooleanField(required=False)
    archived = serializers.BooleanField(required=False)
    marked_unread = serializers.BooleanField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a body that changes nothing."""
        attrs = super().validate(attrs)
        if not attrs:
            raise serializers.ValidationError("Send pinned, archived or marked_unread.")
        return attrs


class NewParticipantSerializer(StrictSerializer):
    """The body of POST /api/v1/chats/{id}/participants: one person or one agent, by name."""

    user = serializers.CharField(max_length=NAME_CHARS, required=False)
    agent = serializers.CharField(max_length=NAME_CHARS, required=False)
    trigger = serializers.ChoiceField(choices=ParticipantReplyTrigger.choices, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require exactly one of the two; only an agent has a trigger."""
        attrs = super().validate(attrs)
        if ("user" in attrs) == ("agent" in attrs):
            raise serializers.ValidationError("Send either a user or an agent.")
        if "user" in attrs and "trigger" in attrs:
            raise serializers.ValidationError({"trigger": "Only agents can have a trigger."})
        return attrs


class InvitedSerializer(serializers.Serializer[Any]):
    """A person of another server was invited: the id of the invitation."""

    invitation = serializers.CharField()


class RenderSerializer(StrictSerializer):
    """The body of POST /api/v1/render: at most 64 KiB of UTF-8."""

    text = serializers.CharField(allow_blank=True, trim_whitespace=False)

    def validate_text(self, text: str) -> str:
        """Refuse a text that would take long to render."""
        if len(text.encode()) > RENDER_BYTES:
            raise serializers.ValidationError(f"The text may have at most {RENDER_BYTES} bytes.")
        return text


class UploadSerializer(serializers.Serializer[Any]):
    """The body of POST /api/v1/contents, as multipart/form-data."""

    file = serializers.FileField()


class NoQuery(serializers.Serializer[Any]):
    """A route without query parameters."""


class ChatsQuery(ListQuery):
    """The query parameters of GET /api/v1/chats."""

    kind = serializers.ChoiceField(choices=["group", "session", "all"], default="group")


class PeopleQuery(serializers.Serializer[Any]):
    """The query parameters of GET /api/v1/users."""

    q = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=NAME_CHARS, help_text="A prefix."
    )
