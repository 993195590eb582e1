"""Summaries of a chat's log entries for people who watch the chat without a session in it.

They are derived from an entry's layer message, once for all connections of a process. Pure.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from sessions_app.frames import frame
from uamp import events as ev

PREVIEW_CHARS: Final = 200
# Entries that make clients reload the chat.
_CHANGES: Final = frozenset(
    {
        "message.edited",
        "message.deleted",
        "chat.updated",
        "participant.joined",
        "participant.left",
        "participant.updated",
    }
)


class Activity(NamedTuple):
    """A frame for those who watch a chat.

    `only` is the id of the only person to receive it, if set; `left` is the id of a person who left
    the chat. `followers` of the thread receive `followed` instead of `frame`.
    """

    frame: str
    only: str = ""
    left: str = ""
    followers: frozenset[str] = frozenset()
    followed: str = ""

    def frame_for(self, user_id: int) -> str | None:
        """Return the frame for a person, or None."""
        person = str(user_id)
        if self.only not in {"", person}:
            return None
        return self.followed if person in self.followers else self.frame


class _WrittenMessage(msgspec.Struct):
    """The fields of a ChatMessage that an activity needs."""

    id: str
    role: str
    content: str = ""
    name: str | None = None
    sender_id: str | None = None
    sender_kind: str | None = None
    created_at: int | None = None
    response_id: str | None = None
    version_of: str | None = None
    thread: str | None = None
    also_in_chat: bool = False


class _MovedMember(msgspec.Struct):
    kind: str = ""
    id: str = ""


class _LoggedFact(msgspec.Struct):
    """The fields of a log entry that an activity needs."""

    message: _WrittenMessage | None = None
    mentions: tuple[str, ...] | None = None
    participant: _MovedMember | None = None
    user_id: str | None = None
    message_id: str | None = None
    thread: str | None = None
    replies: int | None = None
    followers: tuple[str, ...] | None = None


_DECODER: Final = msgspec.json.Decoder(_LoggedFact)


def activity_of(message: dict[str, Any]) -> Activity | None:
    """Return the activity of a log entry (chat_app.log.fanout.event_message); most have none."""
    kind, chat_id, seq = message["event"], message["chat"], message["seq"]
    if kind == "message.created":
        return _of_message(chat_id, seq, _DECODER.decode(message["frame"]))
    if kind == "message.read":
        entry = _DECODER.decode(message["frame"])
        read = ev.ChatActivity(
            chat_id=chat_id,
            kind=kind,
            at_seq=seq,
            message_id=entry.message_id,
            thread=entry.thread,
            replies=entry.replies,
        )
        return Activity(frame(read), only=entry.user_id or "")
    if kind not in _CHANGES:
        return None
    leaver = ""
    if kind == "participant.left":
        member = _DECODER.decode(message["frame"]).participant
        leaver = member.id if member is not None and member.kind == "user" else ""
    return Activity(frame(ev.ChatActivity(chat_id=chat_id, kind=kind, at_seq=seq)), left=leaver)


def changed(chat_id: str, seq: int) -> str:
    """Return the frame that makes clients reload a chat."""
    return frame(ev.ChatActivity(chat_id=chat_id, kind="changed", at_seq=seq))


def _of_message(chat_id: str, seq: int, entry: _LoggedFact) -> Activity:
    new = entry.message
    if new is None:
        return Activity(changed(chat_id, seq))
    short = ev.ActivityMessage(
        id=new.id,
        role=new.role,
        content=new.content[:PREVIEW_CHARS],
        name=new.name,
        sender_id=new.sender_id,
        sender_kind=new.sender_kind,
        created_at=new.created_at,
        response_id=new.response_id,
        mentions=entry.mentions,
        version_of=new.version_of,
        thread=new.thread,
        also_in_chat=new.also_in_chat,
    )
    plain = _created(chat_id, seq, short)
    if not entry.followers:
        return Activity(plain)
    followed = _created(chat_id, seq, msgspec.structs.replace(short, is_followed=True))
    return Activity(plain, followers=frozenset(entry.followers), followed=followed)


def _created(chat_id: str, seq: int, message: ev.ActivityMessage) -> str:
    kind = "message.created"
    return frame(ev.ChatActivity(chat_id=chat_id, kind=kind, at_seq=seq, message=message))
