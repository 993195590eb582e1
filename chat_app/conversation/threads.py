"""Threads: which messages may start one, and the bookkeeping of each reply. Synchronous.

A reply is a message of the log that names the root of its thread. Counts and followers are updated
in the transaction that writes the reply, so displaying them costs no count query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, OuterRef

from chat_app.conversation.errors import MessageNotFound, ThreadNested
from chat_app.members.mentions import mentioned_people
from chat_app.models import Message, MessageThread, Participant, ThreadFollower

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from chat_app.log.entries import NewMessage

FACES: Final = 5
"""How many of the latest repliers are stored with a thread."""
_READ: Final = 50
"""How many replies are read to find the faces of a thread after a deletion."""
FOLLOWERS_MAX: Final = 200
"""The most people that one reply notifies, those it mentions first."""


def thread_root(chat_id: str, message_id: str) -> str:
    """Return the root of a message's thread: itself, or the first version of an answer.

    Raises MessageNotFound for a message that is deleted or not in the chat, and ThreadNested for
    one that is in a thread.
    """
    rows = Message.objects.filter(pk=message_id, chat_id=chat_id, deleted_at__isnull=True)
    row = rows.values_list("thread", "version_of").first()
    if row is None:
        raise MessageNotFound
    thread, first_version = row
    if thread is not None:
        raise ThreadNested
    return str(first_version or message_id)


def followers_of(
    chat_id: str, root_id: str, *, mentions: Sequence[int], author: int | None = None
) -> tuple[int, ...]:
    """Return the members whom a reply to a message will notify, except its author.

    They follow the thread or are mentioned; before the first reply only the root's author follows
    it.
    """
    members = Participant.objects.filter(chat_id=chat_id, user=OuterRef("user"), left_at=None)
    rows = ThreadFollower.objects.filter(Exists(members), thread=root_id).order_by("pk")
    followers = list(rows.values_list("user__pk", flat=True)[: FOLLOWERS_MAX + 1])
    if not followers:
        there = Participant.objects.filter(
            chat_id=chat_id,
            left_at=None,
            user__in=Message.objects.filter(pk=root_id).values("sender_user"),
        )
        followers = list(there.values_list("user__pk", flat=True))
    concerned = dict.fromkeys([*mentions, *followers])
    return tuple(user_id for user_id in concerned if user_id != author)[:FOLLOWERS_MAX]


def count_reply(chat_id: str, reply: NewMessage, seq: int) -> None:
    """Count a reply just written at a place of the log; the caller holds the chat's lock.

    Its author and the people it mentions follow the thread from then on.
    """
    if reply.thread is None:
        return
    face = _face(
        reply.sender_agent_id is not None, reply.sender_agent_id or reply.sender_user_id, reply.name
    )
    thread = MessageThread.objects.filter(pk=reply.thread).first()
    followers = set(mentioned_people(chat_id, reply.content))
    if thread is None:
        root = Message.objects.filter(pk=reply.thread, sender_user__isnull=False)
        followers.update(root.values_list("sender_user__pk", flat=True))
        thread = MessageThread(root_id=reply.thread, chat_id=chat_id)
    if reply.version_of is None:
        # A new version of an answer replaces one that was already counted.
        thread.replies += 1
    thread.last_seq, thread.last_at = seq, reply.at
    thread.faces = _with_face(thread.faces, face)
    thread.save()
    author = reply.sender_user_id
    if author is not None:
        followers.add(author)
    ThreadFollower.objects.bulk_create(
        [ThreadFollower(thread=thread, user_id=user_id) for user_id in sorted(followers)],
        ignore_conflicts=True,
    )
    if author is not None:
        # Replying implies having read everything above.
        ThreadFollower.objects.filter(thread=thread, user_id=author).update(read_seq=seq)


def uncount_reply(reply: Message) -> None:
    """Remove a reply just deleted from the counts; the caller holds the chat's lock."""
    thread = MessageThread.objects.filter(pk=reply.thread).first() if reply.thread else None
    if thread is None or reply.replaced_by is not None:
        return
    thread.replies = max(0, thread.replies - 1)
    replies = Message.objects.filter(
        thread=reply.thread, deleted_at__isnull=True, replaced_by__isnull=True
    )
    columns = ("sender_agent_id", "sender_user_id", "name", "created_at")
    rows = list(replies.order_by("-seq").values_list(*columns)[:_READ])
    faces: list[dict[str, Any]] = []
    for agent_id, user_id, name, _ in reversed(rows):
        faces = _with_face(faces, _face(agent_id is not None, agent_id or user_id, name))
    thread.faces = faces
    if rows:
        thread.last_at = rows[0][3]
    thread.save(update_fields=["replies", "faces", "last_at"])


def threads_of(root_ids: Collection[str], reader: int) -> dict[str, dict[str, Any]]:
    """Return the threads of those messages that have replies, in two queries.

    Each is {replies, last_at, last_seq, participants, following, read_seq}: `participants` are the
    latest repliers, at most FACES, `following` is whether the reader follows it, and `read_seq` is
    how far they have read.
    """
    threads = MessageThread.objects.filter(pk__in=root_ids, replies__gt=0)
    by_root = {
        thread.pk: {
            "replies": thread.replies,
            "last_at": thread.last_at,
            "last_seq": thread.last_seq,
            "participants": thread.faces,
            "following": False,
            "read_seq": 0,
        }
        for thread in threads
    }
    if by_root:
        followed = ThreadFollower.objects.filter(thread__in=by_root, user_id=reader)
        for root_id, read_seq in followed.values_list("thread_id", "read_seq"):
            by_root[root_id] |= {"following": True, "read_seq": read_seq}
    return by_root


def _face(is_agent: bool, sender: object, name: str) -> dict[str, Any]:  # noqa: FBT001 a column
    return {"kind": "agent" if is_agent else "user", "id": str(sender or "anonymous"), "name": name}


def _with_face(faces: list[dict[str, Any]], face: dict[str, Any]) -> list[dict[str, Any]]:
    others = [
        other for other in faces if (other["kind"], other["id"]) != (face["kind"], face["id"])
    ]
    return [face, *others][:FACES]
