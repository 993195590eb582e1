"""Bodies of REST requests that start or continue turns, and their conversion to events."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from rest_framework import serializers

from agents_app.rest.strict import StrictSerializer
from chat_app.contents.reading_rights import ContentNotFound
from chat_app.contents.references import item_of
from chat_app.members.origin_rights import takeable
from sessions_app.rest_turns.waiting import SECONDS_MAX
from uamp.blank_text import is_blank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chat_app.contents.quota import ContentOwner

ATTACHMENTS: Final = 20
AGENTS: Final = 50
_MESSAGE_ID: Final = r"^msg_[A-Za-z0-9_-]{1,36}\Z"
# The members that an input shares with its content item.
_INPUT_MEMBERS: Final = {"image", "audio", "video", "file", "format", "filename", "mime_type"}


class NewMessageSerializer(StrictSerializer):
    """The body of POST /api/v1/chats/{id}/messages: text, files, or both.

    The chat's agents answer according to their triggers. With `queue`, a message that arrives while
    answers are running is sent once they have ended.
    """

    content = serializers.CharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="The text, in Markdown: at most UAMP_MESSAGE_BYTES bytes.",
    )
    attachments = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        max_length=ATTACHMENTS,
        help_text="The `content_id`s of uploaded files.",
    )
    reply_to = serializers.RegexField(
        _MESSAGE_ID, required=False, help_text="The message that this one replies to."
    )
    thread = serializers.RegexField(
        _MESSAGE_ID, required=False, help_text="The message whose thread this one belongs to."
    )
    also_in_chat = serializers.BooleanField(
        required=False, help_text="Whether a message in a thread also appears in the chat."
    )
    queue = serializers.BooleanField(required=False)
    agents = serializers.ListField(
        child=serializers.CharField(max_length=100),
        required=False,
        max_length=AGENTS,
        help_text="The agents of the chat that answer, by name or id; with an empty list none"
        " does. Without it, the triggers of the agents decide.",
    )
    wait = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=SECONDS_MAX,
        help_text="How many seconds to wait for the end of the answers.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Reject empty and oversized messages."""
        attrs = super().validate(attrs)
        text = attrs.get("content", "")
        if len(text.encode("utf-8", "surrogatepass")) > settings.UAMP_MESSAGE_BYTES:
            raise serializers.ValidationError(
                {"content": f"The text may have at most {settings.UAMP_MESSAGE_BYTES} bytes."}
            )
        if is_blank(text) and not attrs.get("attachments"):
            raise serializers.ValidationError({"content": "A message needs text or a file."})
        return attrs


class NewResponseSerializer(NewMessageSerializer):
    """The body of POST /api/v1/responses: a question to one agent.

    It is asked in `chat`, where the agent must be a member, or in a new private chat.
    """

    agents = None  # type: ignore[assignment]  # `agent` answers
    agent = serializers.CharField(max_length=100)
    chat = serializers.RegexField(
        r"^[A-Za-z0-9_-]{1,40}\Z", required=False, help_text="The chat; by default a new one."
    )
    response = serializers.DictField(
        required=False,
        help_text="What `response.create` of UAMP has as `response`: instructions, tools, model, …",
    )
    response_format = serializers.DictField(
        required=False, help_text="The format of the answer, as in `response.create` of UAMP."
    )


class RetrySerializer(StrictSerializer):
    """The body of POST /api/v1/responses/{id}/retry: empty, or overrides for the new answer."""

    response = serializers.DictField(
        required=False, help_text="What `response.create` of UAMP has as `response`."
    )
    wait = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=SECONDS_MAX,
        help_text="How many seconds to wait for the end of the answer.",
    )


class DecisionSerializer(StrictSerializer):
    """The body of POST /api/v1/tool-calls/{id}/decision."""

    approved = serializers.BooleanField()
    reason = serializers.CharField(
        required=False, max_length=1000, help_text="The reason for a refusal, for the model."
    )


class ToolResultSerializer(StrictSerializer):
    """The body of POST /api/v1/tool-calls/{id}/result, for a tool run by the client."""

    result = serializers.CharField(
        allow_blank=True, trim_whitespace=False, help_text="JSON text, as in `tool.result`."
    )
    is_error = serializers.BooleanField(required=False, default=False)


def input_events(
    body: Mapping[str, Any], *, sender: ContentOwner, chat_id: str
) -> list[dict[str, Any]]:
    """Return the inputs of a message to a chat; raises ValidationError for files of others.

    A new chat has no id yet. The first input carries the message being replied to, and the thread.
    """
    events: list[dict[str, Any]] = []
    if not is_blank(body.get("content", "")):
        events.append({"type": "input.text", "text": body["content"]})
    for place, content_id in enumerate(body.get("attachments", ())):
        events.append(_input_of(content_id, place, sender, chat_id))
    for name in ("reply_to", "thread", "also_in_chat"):
        if name in body:
            events[0][name] = body[name]
    return [{"event_id": uuid.uuid4().hex, **event} for event in events]


def _input_of(
    content_id: uuid.UUID, place: int, sender: ContentOwner, chat_id: str
) -> dict[str, Any]:
    try:
        content = takeable(str(content_id), taker=sender, chat_id=chat_id)
    except ContentNotFound as error:
        raise serializers.ValidationError(
            {"attachments": {str(place): "There is no such file, or you may not use it here."}}
        ) from error
    item: dict[str, Any] = msgspec.to_builtins(item_of(content))
    members = {name: value for name, value in item.items() if name in _INPUT_MEMBERS}
    last = {"is_final": True} if item["type"] == "audio" else {}
    return {"type": f"input.{item['type']}", **members, **last}
