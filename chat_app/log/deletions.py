"""Reads of the log without the bodies of deleted messages.

Entries are never changed, so every reader passes them through `without_deleted` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.db.models import Exists, OuterRef, Q

from chat_app.models import ChatEvent, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    Entry: TypeAlias = tuple[str, str, dict[str, Any]]

# Hashes from which a short text could be guessed go with it; entries that older servers erased have
# a `body_sha256`.
_WITH_TEXT: Final = frozenset({"content_items", "salt", "body_sha256"})
_WITH_OUTPUT: Final = frozenset({"signature", "salt", "body_sha256"})


def without_deleted(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the payloads of entries, (type, response id, payload), as members may read them.

    One query for all of them. Deleted messages are left out with their salts, also from the output
    of their response, which loses its signature; the entry that announced one has `deleted_at`.
    """
    message_ids = {message_in(event_type, payload) for event_type, _, payload in entries}
    response_ids = {
        response_id for event_type, response_id, _ in entries if event_type in ChatEvent.TERMINAL
    }
    deleted: dict[str, int] = {}
    if len(message_ids) > 1 or response_ids or "" not in message_ids:
        rows = _deleted().filter(
            Q(pk__in=message_ids - {""}) | Q(response_id__in=response_ids - {""})
        )
        for deleted_id, response_id, at in rows.values_list("pk", "response_id", "deleted_at"):
            deleted[deleted_id] = deleted[response_id] = int(at.timestamp() * 1000) if at else 0
    deleted.pop("", None)
    if not deleted:
        return [payload for _, _, payload in entries]
    return [_visible_payload(entry, deleted) for entry in entries]


def deleted_answers(response_ids: Iterable[str]) -> set[str]:
    """Filter responses to those with a deleted answer."""
    rows = _deleted().filter(response_id__in=set(response_ids) - {""})
    return set(rows.values_list("response_id", flat=True))


def has_deleted_answer(response: str = "pk") -> Exists:
    """Return a condition for queries of responses, or of rows with one: the answer was deleted."""
    return Exists(_deleted().filter(response_id=OuterRef(response)))


def has_changed(*, response_id: str, message_id: str | None, since: datetime) -> bool:
    """Return whether a response's answer or question was edited or deleted since a time."""
    texts = Message.objects.filter(Q(response_id=response_id) | Q(pk=message_id))
    changed: bool = texts.filter(Q(deleted_at__gte=since) | Q(edited_at__gte=since)).exists()
    return changed


def _deleted() -> QuerySet[Message]:
    """Return the deleted messages: planners use their response index, which is selective."""
    return Message.objects.filter(deleted_at__isnull=False)


def message_in(event_type: str, payload: dict[str, Any]) -> str:
    """Return the id of the message whose text an entry contains; "" if none."""
    match event_type:
        case "message.created":
            return str(payload.get("message", {}).get("id", ""))
        case "message.edited":
            return str(payload.get("message_id", ""))
    return ""


def _visible_payload(entry: Entry, deleted: dict[str, int]) -> dict[str, Any]:
    event_type, response_id, payload = entry
    at = deleted.get(message_in(event_type, payload))
    if at is not None and event_type == "message.created":
        return {**payload, "message": _marker(payload["message"], at)}
    if at is not None:
        return _marker(payload, at)
    if response_id in deleted and event_type in ChatEvent.TERMINAL:
        return without_output(payload)
    return payload


def _marker(body: dict[str, Any], at: int) -> dict[str, Any]:
    fields = {name: value for name, value in body.items() if name not in _WITH_TEXT}
    return {**fields, "content": "", "deleted_at": at}


def is_output_erased(entry: ChatEvent) -> bool:
    """Return whether nothing is left of the answer in a response's terminal event.

    The erasure of a person may take a name from it and leave the answer.
    """
    response = entry.payload.get("response") or {}
    output = response.get("output") or entry.payload.get("partial_output")
    return entry.erased_digest is not None and not output


def without_output(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of a response's terminal event without the answer and its signature."""
    result = {name: value for name, value in payload.items() if name not in _WITH_OUTPUT}
    if "partial_output" in result:
        result["partial_output"] = []
    if result.get("response"):
        result["response"] = {**result["response"], "output": []}
    return result
