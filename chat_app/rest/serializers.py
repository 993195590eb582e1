"""The shapes of people, chats and contents in REST: what goes out, what may come in (docs/rest.md).

Times are ISO 8601 in UTC here; the UAMP wire has milliseconds (UAMP §4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from rest_framework import serializers

from agents_app.rest.views import StrictSerializer
from chat_app.contents import addresses, references
from chat_app.models import ParticipantReplyTrigger, PayerRule
from chat_app.rest.paging import ListQuery

if TYPE_CHECKING:
    from chat_app.models import Content

TITLE_CHARS: Final = 200
NAME_CHARS: Final = 150
USERS_MAX: Final = 100
AGENTS_MAX: Final = 20
RENDER_BYTES: Final = 64 * 1024


# --- Out ---


class MeSerializer(serializers.Serializer[Any]):
    """The caller."""

    id = serializers.CharField()
    username = serializers.CharField()


class PersonSerializer(MeSerializer):
    """A person who can be added to a chat."""


class PricingSerializer(serializers.Serializer[Any]):
    """What an agent asks, as decimal strings in `currency`: for an answer, 1000 tokens, a tool."""

    currency = serializers.CharField()
    per_answer = serializers.CharField()
    input_per_1k = serializers.CharField()
    output_per_1k = serializers.CharField()
    cache_read_per_1k = serializers.CharField(allow_null=True)
    cache_write_per_1k = serializers.CharField(allow_null=True)
    tools = serializers.DictField(child=serializers.CharField())
    unfinished = serializers.CharField(
        help_text="What of per_answer a stopped answer costs: whole, or share of expected_tokens."
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
    role = serializers.CharField(help_text="owner or member")
    trigger = serializers.CharField(
        required=False, help_text="When an agent answers: mention, always or never."
    )
    online = serializers.BooleanField(required=False)
    pricing = PricingSerializer(required=False, allow_null=True)


class PreviewSerializer(serializers.Serializer[Any]):
    """The beginning of a chat's last message."""

    name = serializers.CharField()
    content = serializers.CharField()


class ChatSerializer(serializers.Serializer[Any]):
    """A chat as one member sees it; `unread` stops counting at 100."""

    id = serializers.CharField()
    title = serializers.CharField()
    kind = serializers.CharField(help_text="group or session")
    payer = serializers.CharField(help_text="The payer: asker, owner, pool, or sponsor.")
    only_owners_pin = serializers.BooleanField(help_text="Otherwise all members pin messages.")
    created_at = serializers.DateTimeField()
    latest_at = serializers.DateTimeField()
    last_seq = serializers.IntegerField()
    epoch = serializers.CharField()
    unread = serializers.IntegerField()
    preview = PreviewSerializer(allow_null=True)
    participants = ParticipantSerializer(many=True)


class ContentSerializer(serializers.Serializer[Any]):
    """A stored file; `item` is the content item that refers to it (UAMP §8.4.2)."""

    content_id = serializers.UUIDField()
    url = serializers.CharField()
    signed_url = serializers.CharField(help_text="Readable by any client for a while (15 minutes).")
    mime_type = serializers.CharField()
    size_bytes = serializers.IntegerField()
    filename = serializers.CharField()
    sha256 = serializers.CharField()
    created_at = serializers.DateTimeField()
    item = serializers.DictField()


class HtmlSerializer(serializers.Serializer[Any]):
    """Rendered text: safe to insert into a page of this server."""

    html = serializers.CharField()


def content_data(content: Content) -> dict[str, Any]:
    """Return a content as ContentSerializer describes it."""
    return {
        "content_id": content.pk,
        "url": addresses.content_url(content.pk),
        "signed_url": addresses.signed_url(content.pk),
        "mime_type": content.mime_type,
        "size_bytes": content.size_bytes,
        "filename": content.filename,
        "sha256": content.sha256,
        "created_at": content.created_at,
        "item": msgspec.to_builtins(references.item_of(content)),
    }


# --- In ---


class NewChatSerializer(StrictSerializer):
    """The body of POST /api/v1/chats: people and agents by name; the caller is always a member."""

    title = serializers.CharField(
        max_length=TITLE_CHARS, required=False, default="", allow_blank=True
    )
    users = serializers.ListField(
        child=serializers.CharField(max_length=NAME_CHARS), max_length=USERS_MAX, default=list
    )
    agents = serializers.ListField(
        child=serializers.CharField(max_length=NAME_CHARS), max_length=AGENTS_MAX, default=list
    )


class ChatChangeSerializer(StrictSerializer):
    """The body of PATCH /api/v1/chats/{id}: what is to be another."""

    title = serializers.CharField(max_length=TITLE_CHARS, required=False, allow_blank=True)
    payer = serializers.ChoiceField(choices=PayerRule.choices, required=False)
    only_owners_pin = serializers.BooleanField(required=False)


class NewParticipantSerializer(StrictSerializer):
    """The body of POST /api/v1/chats/{id}/participants: one person or one agent, by name."""

    user = serializers.CharField(max_length=NAME_CHARS, required=False)
    agent = serializers.CharField(max_length=NAME_CHARS, required=False)
    trigger = serializers.ChoiceField(choices=ParticipantReplyTrigger.choices, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse none and two; a trigger is an agent's."""
        attrs = super().validate(attrs)
        if ("user" in attrs) == ("agent" in attrs):
            raise serializers.ValidationError("Name one user or one agent.")
        if "user" in attrs and "trigger" in attrs:
            raise serializers.ValidationError({"trigger": "Only an agent has a trigger."})
        return attrs


class RenderSerializer(StrictSerializer):
    """The body of POST /api/v1/render: at most 64 KiB of UTF-8."""

    text = serializers.CharField(allow_blank=True, trim_whitespace=False)

    def validate_text(self, text: str) -> str:
        """Refuse a text that would take long to render."""
        if len(text.encode()) > RENDER_BYTES:
            raise serializers.ValidationError(f"The text has at most {RENDER_BYTES} bytes.")
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
