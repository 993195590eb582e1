"""Entries of logs as the contents of envelopes: from a home to mirrors, and back. Synchronous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.models import User

from chat_app.log.homes import is_from_home
from federation_app import own_names
from federation_app.guests import accounts
from federation_app.guests.shared_files import files_in, turn_of
from federation_app.message_notes import missing_note, with_note

if TYPE_CHECKING:
    from chat_app.log.history import LoggedEvent
    from federation_app.guests.contents import SharedFile
    from federation_app.models import Peer

RELAYED: Final = frozenset(
    {
        "message.created",
        "message.edited",
        "message.deleted",
        "message.read",
        "message.pinned",
        "message.unpinned",
        "reaction.added",
        "reaction.removed",
        "participant.joined",
        "participant.left",
        "chat.updated",
        "agent.stopped",
    }
)
"""The types of the entries that a home sends to its followers."""
_OWN: Final = {
    "message.edited": "edit",
    "message.deleted": "delete",
    "message.read": "read",
    "message.pinned": "pin",
    "message.unpinned": "unpin",
    "reaction.added": "react",
    "reaction.removed": "unreact",
}
_MESSAGE: Final = ("id", "content", "name", "sender_kind", "created_at", "reply_to")


def own_act(peer: Peer, entry: LoggedEvent) -> dict[str, Any] | None:
    """Return the action of a person here in a mirror; None for any other entry of its log."""
    payload = entry.payload
    if is_from_home(payload.get("event_id")):
        return None
    if entry.type == "participant.left":
        person = payload.get("participant", {})
        is_own = (payload.get("by") or {}).get("id") == person.get("id")
        user_id, act = (person.get("id") if is_own else None), {"act": "leave"}
    elif entry.type in _OWN:
        user_id, act = payload.get("user_id"), {"act": _OWN[entry.type]}
        act["message"] = str(payload.get("message_id"))
        if entry.type == "message.edited":
            act["text"] = str(payload.get("content", ""))
        if "emoji" in payload:
            act["emoji"] = payload["emoji"]
    else:
        return None
    user = _user(user_id)
    if user is None or accounts.is_guest(user):
        return None
    (by,) = accounts.remote_people(peer, [user])
    return {**act, "by": by}


def author_of(entry: LoggedEvent) -> User | None:
    """Return the person who caused an entry of a home's log."""
    if entry.type == "message.created":
        message = entry.payload["message"]
        return _user(message["sender_id"]) if message.get("sender_kind") == "user" else None
    return _user(entry.payload.get("user_id"))


def relayed(entry: LoggedEvent) -> tuple[dict[str, Any], list[SharedFile]]:
    """Return the members of an event that a peer needs, and the files of its message.

    A message says where its other media are, such as those at addresses elsewhere.
    """
    payload = entry.payload
    if entry.type == "message.created":
        message = payload["message"]
        event = {name: message[name] for name in _MESSAGE if message.get(name) is not None}
        files, others = files_in(message.get("content_items") or ())
        note = missing_note(others, own_names.own_identity().authority)
        event["content"] = with_note(event.get("content", ""), note)
        if turn_of(message.get("client_event_id")) is not None:
            event["client_event_id"] = message["client_event_id"]
        return {"type": entry.type, "message": event}, files
    names: tuple[str, ...] = ("message_id", "content", "emoji")
    if entry.type == "agent.stopped":
        names = ("message_id", "agent", "reason", "message")
    return {"type": entry.type, **{name: payload[name] for name in names if name in payload}}, []


def _user(user_id: object) -> User | None:
    if not isinstance(user_id, str) or not user_id.isdecimal():
        return None
    return User.objects.filter(pk=int(user_id)).first()
