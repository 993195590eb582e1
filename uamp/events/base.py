"""The base of all events (UAMP §4).

An event is frozen data. Its class determines its ``type``, so no field can contradict it.
"""

import msgspec

from uamp.types.bounds import Count, Time


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="event"
):
    """Base of all events: ids are opaque strings, ``timestamp`` is Unix milliseconds.

    ``session_id`` scopes the event on a multiplexed connection (§10). ``seq``, an addition that
    other clients ignore (§14.3), is the place of a durable event in its chat's log. ``salt``, also
    an addition, is a random string that the log's hash of the event covers: it is deleted together
    with the text, which then cannot be guessed from the hash.
    """

    event_id: str | None = None
    timestamp: Time | None = None
    session_id: str | None = None
    seq: Count | None = None
    salt: str | None = None


class UnknownEvent(Event, frozen=True, kw_only=True, tag="unknown"):
    """An event of a type unknown to this side, to be logged and ignored (UAMP §14.3)."""

    type_name: str


def type_of(event: Event) -> str:
    """Return the wire type of ``event``, such as ``input.text``."""
    if isinstance(event, UnknownEvent):
        return event.type_name
    return str(event.__struct_config__.tag)
