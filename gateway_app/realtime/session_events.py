"""The Realtime events outside responses: those of the session, items, errors and limits.

A message is a dict without an `event_id`, which the socket adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import error_body
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway_app.realtime.audio_fields import SpeechSettings
    from gateway_app.realtime.items import RealtimeItem
    from gateway_app.realtime.read import GenerationFields, SessionFields
    from uamp import RemoteProtocolError
    from uamp.events import Event
    from uamp.events.server import ErrorDetail

    Shown: TypeAlias = dict[str, Any]

# Events unknown to Realtime, which its clients receive in UAMP's format.
EXTRA: Final = (
    ev.PaymentRequired
    | ev.PaymentAccepted
    | ev.PaymentBalance
    | ev.PaymentError
    | ev.ToolApprovalRequired
    | ev.ToolApprovalDone
)
_OF_UAMP: Final = frozenset({"session_id", "timestamp", "seq"})


def session_event(
    kind: str,
    session_id: str,
    model: str,
    fields: SessionFields,
    *,
    is_ga: bool,
    speech: SpeechSettings | None = None,
    speaks: bool = False,
) -> Shown:
    """Return session.created or session.updated with the settings in force.

    `speech` holds the audio settings if the agent accepts audio.
    """
    modalities = modalities_of(is_spoken=speaks and is_spoken(fields), is_ga=is_ga)
    limit = fields.limit or "inf"
    session: Shown = {
        "id": session_id,
        "object": "realtime.session",
        "model": model,
        "instructions": fields.instructions or "",
        "tools": msgspec.to_builtins(fields.tools or ()),
        "tool_choice": msgspec.to_builtins(fields.tool_choice or "auto"),
    }
    if is_ga:
        session |= {"type": "realtime", "output_modalities": modalities}
        session |= {"max_output_tokens": limit}
    else:
        session |= {"modalities": modalities, "max_response_output_tokens": limit}
        session |= {} if fields.temperature is None else {"temperature": fields.temperature}
    if speech is not None:
        session |= speech.body(is_ga=is_ga, speaks=speaks)
    return {"type": kind, "session": session}


def is_spoken(fields: GenerationFields) -> bool:
    """Return whether a speaking agent answers in speech: unless the client wants only text."""
    return fields.requested_modalities is None or "audio" in fields.requested_modalities


def modalities_of(*, is_spoken: bool, is_ga: bool) -> list[str]:
    """Return the modalities of an answer; speech includes its transcript, implicitly in GA."""
    if not is_spoken:
        return ["text"]
    return ["audio"] if is_ga else ["audio", "text"]


def item_created(item: RealtimeItem, previous: str | None, *, is_ga: bool) -> Iterator[Shown]:
    """Yield the events that answer conversation.item.create."""
    members = {"previous_item_id": previous, "item": item.body(is_ga=is_ga)}
    for kind in ("added", "done") if is_ga else ("created",):
        yield {"type": f"conversation.item.{kind}", **members}


def error_event(error: RemoteProtocolError | ErrorDetail, event_id: str | None) -> Shown:
    """Return the error event that answers a client event."""
    body = msgspec.to_builtins(error_body(error).error)
    return {"type": "error", "error": {**body, "event_id": event_id}}


def limits_event(limit: ev.RateLimit, now: float) -> Shown:
    """Return rate_limits.updated; `now` is in Unix seconds."""
    requests = {
        "name": "requests",
        "limit": limit.limit,
        "remaining": limit.remaining,
        "reset_seconds": max(0.0, limit.reset_at - now),
    }
    return {"type": "rate_limits.updated", "rate_limits": [requests]}


def extra_event(event: Event) -> Shown:
    """Return, in UAMP's format, an event that Realtime lacks."""
    return {name: value for name, value in uamp.to_dict(event).items() if name not in _OF_UAMP}
