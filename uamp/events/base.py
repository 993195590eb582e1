"""What every event has (UAMP §4).

An event is frozen data. Its ``type`` is its class, so no field can contradict it.
"""

import msgspec

from uamp.types.bounds import Count, Time


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="event"
):
    """Base of all events: ids are opaque strings, ``timestamp`` is Unix milliseconds.

    ``session_id`` scopes the event on a multiplexed connection (§10). ``seq`` is the place of a
    durable event in its chat's log, an addition that other clients ignore (§14.3).
    """

    event_id: str | None = None
    timestamp: Time | None = None
    session_id: str | None = None
    seq: Count | None = None


class UnknownEvent(Event, frozen=True, kw_only=True, tag="unknown"):
    """An event whose type this side does not know: to be logged and ignored (UAMP §14.3)."""

    type_name: str


def type_of(event: Event) -> str:
    """Return the wire type of ``event``, such as ``input.text``."""
    if isinstance(event, UnknownEvent):
        return event.type_name
    return str(event.__struct_config__.tag)
