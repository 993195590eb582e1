"""Serializers of the entries of a chat's log in REST (docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rest_framework import serializers

from chat_app.log.deletions import without_deleted
from chat_app.log.history import LOG_TYPES
from chat_app.rest.paging import SeqQuery
from chat_app.rest.uamp_types import UampField

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.models import ChatEvent

TYPES_SPAN: Final = 5_000
"""The widest range of places that may be searched for events of given types."""


class EventSerializer(serializers.Serializer[Any]):
    """One entry of a chat's log; `payload` is the UAMP event."""

    seq = serializers.IntegerField()
    type = serializers.CharField()
    response_id = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    payload = UampField("Event")


class EventsQuery(SeqQuery):
    """The query parameters of GET /api/v1/chats/{id}/events."""

    types = serializers.CharField(
        required=False,
        max_length=400,
        help_text=(
            "Only events of these types, separated by commas, "
            f"between an `after` and a `before` that are at most {TYPES_SPAN} apart."
        ),
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Split the types, and require a bounded range of places to search."""
        if "types" not in attrs:
            return attrs
        after, before = attrs.get("after"), attrs.get("before")
        if after is None or before is None or before - after > TYPES_SPAN:
            raise serializers.ValidationError(
                {"types": f"`types` needs `after` and `before`, at most {TYPES_SPAN:,} apart."}
            )
        types = attrs["types"].split(",")
        if unknown := sorted(set(types) - set(LOG_TYPES)):
            raise serializers.ValidationError(
                {
                    "types": f"Unknown types: {', '.join(unknown)}."
                    f" Supported: {', '.join(LOG_TYPES)}."
                }
            )
        return {**attrs, "types": types}


def events_data(events: Sequence[ChatEvent]) -> list[dict[str, Any]]:
    """Return log entries as described by EventSerializer, without deleted bodies."""
    payloads = without_deleted([(event.type, event.response_id, event.payload) for event in events])
    return [
        {
            "seq": event.seq,
            "type": event.type,
            "response_id": event.response_id or None,
            "created_at": event.created_at,
            "payload": payload,
        }
        for event, payload in zip(events, payloads, strict=True)
    ]
