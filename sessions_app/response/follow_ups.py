"""Messages with which clients answered responses that were waiting for them. Synchronous."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

import uamp
from sessions_app.models import FollowUp, ToolCall

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


class FollowUpMessage(NamedTuple):
    """A follow-up, with the id chosen by its client.

    A part is an object with `text`, `data` or `medium`. When writing, `medium` is an index into the
    media of the result of tool call `call_id`. When reading, it is the medium.
    """

    message_id: str
    parts: Sequence[Mapping[str, Any]]


def add_follow_up(response_id: str, message: FollowUpMessage) -> None:
    """Store a follow-up; storing it again has no effect."""
    digest = hashlib.sha256(msgspec.json.encode(message)).hexdigest()
    FollowUp.objects.get_or_create(
        response_id=response_id,
        digest=digest,
        defaults={"message_id": message.message_id, "parts": list(message.parts)},
    )


def follow_ups_of(response_ids: Collection[str]) -> Mapping[str, Sequence[FollowUpMessage]]:
    """Return the follow-ups of responses, in order of arrival.

    Media that their tool call no longer contains are left out.
    """
    rows = list(FollowUp.objects.filter(response_id__in=response_ids).order_by("id"))
    media = _media_of({row.response_id for row in rows if any("medium" in p for p in row.parts)})
    messages: defaultdict[str, list[FollowUpMessage]] = defaultdict(list)
    for row in rows:
        all_parts = [_stored_part(row.response_id, part, media) for part in row.parts]
        parts = [part for part in all_parts if part is not None]
        messages[row.response_id].append(FollowUpMessage(row.message_id, parts))
    return messages


def _stored_part(
    response_id: str,
    part: Mapping[str, Any],
    media: Mapping[tuple[str, str], Sequence[uamp.MediaContent]],
) -> Mapping[str, Any] | None:
    if "medium" not in part:
        return part
    items = media.get((response_id, part["call_id"]), ())
    return {"medium": items[part["medium"]]} if part["medium"] < len(items) else None


def _media_of(response_ids: set[str]) -> dict[tuple[str, str], list[uamp.MediaContent]]:
    if not response_ids:
        return {}
    calls = ToolCall.objects.filter(response_id__in=response_ids).exclude(content_items=[])
    return {
        (response_id, call_id): [
            item
            for item in msgspec.convert(items, tuple[uamp.ContentItem, ...])
            if isinstance(item, uamp.MediaContent)
        ]
        for response_id, call_id, items in calls.values_list(
            "response_id", "call_id", "content_items"
        )
    }
