"""The updates of shared chats that a peer still lacks, in posting order. Synchronous.

There is no outbox table: invitations, waiting messages and the logs of chats are the outboxes,
each with a cursor that moves when the peer has accepted an item (ADR 66). A process claims a peer
for one item; another takes over when the claim has expired. While a peer fetches the files of an
item, the rest of that chat waits, and items of other chats are posted.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from chat_app.conversation import mirrors as chats
from chat_app.log.epochs import epoch_of
from chat_app.log.history import chat_heads, events_after
from chat_app.members.chat_lists import title_and_pin_rule
from chat_app.members.membership import last_leaving, people_of
from federation_app.envelope.members.reading import Intent
from federation_app.guests import accounts, entries
from federation_app.guests.contents import MAX_MEMBERS
from federation_app.guests.posts import note_too_large, refusal_in, sign
from federation_app.guests.shared_files import TURN, describe
from federation_app.models import (
    ChatFollower,
    ChatMirror,
    ErasureNotice,
    Guest,
    GuestInvitation,
    InvitationState,
    Peer,
)
from federation_app.peers import registry
from sessions_app.queue import rows as queue
from sessions_app.queue.files import files_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

    from agents_app.outbound.guard import Posted
    from chat_app.log.history import LoggedEvent
    from federation_app.guests.posts import PostRefusal, SignedPost

logger = logging.getLogger(__name__)

CLAIM: Final = timedelta(seconds=30)
"""How long a process may take for one item."""
BACKOFF_SECONDS: Final = (1.0, 60.0)
MAX_RETRY_AFTER: Final = 600
_searched: Final[dict[int, tuple[int, int]]] = {}
"""Parts of logs in which a follower's peer has nothing to learn, from its place to the head."""
_DONE: Final = range(200, 300)
# Refusals that a retry would not change. Others are retried: 4.01 may also mean a wrong clock or a
# peer that has suspended us; 4.29 and 5.04 say when.
_FINAL: Final = frozenset({400, 402, 403, 404, 409, 413, 415})
# Refusals that end a chat for a peer: it, or its people, are not in the chat any more.
_GONE: Final = frozenset({403, 404})


@dataclass(frozen=True, kw_only=True)
class OutgoingEnvelope:
    """An envelope to post to a peer; `done` and `refused` record its outcome."""

    post: SignedPost
    claimed_until: datetime
    done: Callable[[], object]
    refused: Callable[[PostRefusal], object]
    # Statuses after which a retry may succeed, besides those of a busy or absent peer.
    passing: frozenset[int] = frozenset()
    # Holds its chat until a time; None for an item without files.
    hold: Callable[[datetime], object] | None = None


@dataclass(frozen=True, kw_only=True)
class _UnknownContent:
    intent: Intent
    members: dict[str, Any]
    done: Callable[[], object]
    refused: Callable[[PostRefusal], object]
    passing: frozenset[int] = frozenset()
    hold: Callable[[datetime], object] | None = None


def due_peers() -> list[int]:
    """Return the trusted peers to which something may have to be posted now."""
    of_peer = Q(peer=OuterRef("pk"))
    concerned = (
        Exists(GuestInvitation.objects.filter(of_peer, is_sent=False))
        | Exists(ErasureNotice.objects.filter(of_peer))
        | Exists(ChatMirror.objects.filter(of_peer))
        | Exists(ChatFollower.objects.filter(of_peer))
    )
    peers = registry.trusted_peers().filter(concerned, deliver_at__lte=timezone.now())
    return list(peers.values_list("pk", flat=True))


def followed_chats() -> QuerySet[ChatFollower, str]:
    """Return the chats here whose log a trusted peer has to receive, for its guests."""
    rows = ChatFollower.objects.filter(peer__in=registry.trusted_peers())
    return rows.values_list("chat_id", flat=True)


def claim(peer_id: int) -> OutgoingEnvelope | None:
    """Claim a peer for its next item; None if there is none, or another process has claimed it."""
    now = timezone.now()
    peer = registry.trusted_peers().filter(pk=peer_id).first()
    if peer is None or peer.deliver_at > now:
        return None
    content = next(_contents(peer), None)
    if content is None:
        return None
    until = now + CLAIM
    claimed = Peer.objects.filter(pk=peer_id, deliver_at=peer.deliver_at)
    if not claimed.update(deliver_at=until):
        return None
    return OutgoingEnvelope(
        post=sign(peer, content.intent, content.members),
        claimed_until=until,
        done=content.done,
        refused=content.refused,
        passing=content.passing,
        hold=content.hold,
    )


def finish(item: OutgoingEnvelope, posted: Posted | None) -> bool:
    """Record how a peer has answered an item; return whether the next one may be posted.

    None stands for a peer that has not answered.
    """
    status, retry_after = (None, None) if posted is None else (posted.status, posted.retry_after)
    now = timezone.now()
    mine = Peer.objects.filter(pk=item.post.peer_id, deliver_at=item.claimed_until)
    if posted is not None and (status in _DONE or status in _FINAL - item.passing):
        if status in _DONE:
            item.done()
        elif status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE or not note_too_large(item.post):
            item.refused(refusal_in(posted))
        mine.update(deliver_at=now, failures=0)
        return True
    if item.hold is not None and status == HTTPStatus.SERVICE_UNAVAILABLE:
        # A peer that is busy with more than the files refuses the next item, too.
        seconds = min(max(retry_after or 1, 1), MAX_RETRY_AFTER)
        item.hold(now + timedelta(seconds=seconds))
        mine.update(deliver_at=now)
        return True
    failures = (
        Peer.objects.filter(pk=item.post.peer_id).values_list("failures", flat=True).first() or 0
    )
    shortest, longest = BACKOFF_SECONDS
    seconds = min(longest, shortest * 2 ** min(failures, 10))
    seconds = max(seconds, min(retry_after or 0, MAX_RETRY_AFTER))
    mine.update(deliver_at=now + timedelta(seconds=seconds), failures=failures + 1)
    return False


def _contents(peer: Peer) -> Iterator[_UnknownContent]:
    """Yield the items that the peer lacks, in posting order."""
    yield from _erasures(peer)
    yield from _invitations(peer)
    mirrored = list(ChatMirror.objects.filter(peer=peer).order_by("pk"))
    chat_ids = [row.chat_id for row in mirrored]
    heads, waiting = chat_heads(chat_ids), queue.waiting_elsewhere(chat_ids)
    for mirror in mirrored:
        if mirror.is_behind:
            yield _continuation(mirror)
        if _is_held(mirror):
            continue
        if (turn := waiting.get(mirror.chat_id)) is not None:
            yield _turn(peer, mirror, turn)
        if heads.get(mirror.chat_id, 0) > mirror.sent_seq:
            yield from _own_acts(peer, mirror)
    followers = list(ChatFollower.objects.filter(peer=peer).order_by("pk"))
    heads = chat_heads([row.chat_id for row in followers])
    for follower in followers:
        place = follower.sent_seq, heads.get(follower.chat_id, 0)
        if place[1] > place[0] and _searched.get(follower.pk) != place and not _is_held(follower):
            yield from _entries(peer, follower)
            _searched[follower.pk] = place


def _is_held(row: ChatMirror | ChatFollower) -> bool:
    return row.held_until is not None and row.held_until > timezone.now()


def _holding(row: ChatMirror | ChatFollower) -> Callable[[datetime], object]:
    def hold(until: datetime) -> None:
        type(row).objects.filter(pk=row.pk).update(held_until=until)

    return hold


def _erasures(peer: Peer) -> Iterator[_UnknownContent]:
    for row in ErasureNotice.objects.filter(peer=peer).select_related("user").order_by("pk")[:1]:
        (by,) = accounts.remote_people(peer, [row.user])
        done = row.delete
        yield _UnknownContent(
            intent=Intent.INFORM,
            members={"act": "erase", "by": by},
            done=done,
            refused=partial(_refused_act, done),
        )


def _invitations(peer: Peer) -> Iterator[_UnknownContent]:
    for row in GuestInvitation.objects.filter(peer=peer, is_sent=False).order_by("pk")[:1]:
        rows = GuestInvitation.objects.filter(pk=row.pk, state=row.state)
        members: dict[str, Any] = {"invitation": row.invitation_id}
        refused: Callable[[PostRefusal], object] = partial(_refuse, rows, InvitationState.WITHDRAWN)
        (user,) = accounts.remote_people(peer, [row.user])
        if row.state == InvitationState.OPEN:
            intent = Intent.PROPOSE
            members |= {"chat": row.chat_id, "title": row.title, "by": user, "to": row.name}
            refused = partial(_refuse, rows, InvitationState.REFUSED)
        elif row.state == InvitationState.ACCEPTED:
            intent = Intent.CONFIRM
            members["by"] = user
        else:
            intent = Intent.DENY if row.is_received else Intent.CANCEL
            refused = partial(_refuse, rows, row.state)
        yield _UnknownContent(
            intent=intent, members=members, done=partial(rows.update, is_sent=True), refused=refused
        )


def _refuse(rows: Any, state: str, _refusal: PostRefusal) -> None:
    rows.update(state=state, is_sent=True)


def _continuation(mirror: ChatMirror) -> _UnknownContent:
    done = partial(ChatMirror.objects.filter(pk=mirror.pk).update, is_behind=False)
    return _UnknownContent(
        intent=Intent.SUBSCRIBE,
        members={"chat": mirror.home_chat_id, "after": mirror.applied_seq},
        done=done,
        refused=lambda _refusal: done(),
    )


def _turn(peer: Peer, mirror: ChatMirror, turn: Any) -> _UnknownContent:
    """Return a message that waits; its row is removed when the home has placed it."""
    key = hashlib.sha256(f"{turn.session_id} {turn.event_id}".encode()).hexdigest()[:24]
    files = [describe(*file) for file in files_of(turn)]
    replies = [item["reply_to"] for item in turn.inputs if item.get("reply_to")]
    (by,) = accounts.remote_people(peer, [turn.user])

    def refused(refusal: PostRefusal) -> None:
        reason = f"{accounts.host_of(peer)} refused this message."
        queue.refuse_elsewhere(turn, refusal.code, reason)

    return _UnknownContent(
        intent=Intent.INFORM,
        members={
            "act": "message",
            "chat": mirror.home_chat_id,
            "by": by,
            "ref": f"{TURN}{turn.pk}-{key}",
            "text": turn.text,
            "files": msgspec.to_builtins(files),
            **({"reply_to": replies[0]} if replies else {}),
        },
        done=partial(queue.accepted_elsewhere, turn),
        refused=refused,
        hold=_holding(mirror) if files else None,
    )


def _own_acts(peer: Peer, mirror: ChatMirror) -> Iterator[_UnknownContent]:
    """Yield the next action of a person here in a mirror; move its cursor past other entries."""
    while logged := events_after(mirror.chat_id, mirror.sent_seq):
        for entry in logged:
            move_on = partial(_sent_act, mirror.pk, entry.seq)
            act = entries.own_act(peer, entry)
            if act is not None:
                yield _UnknownContent(
                    intent=Intent.INFORM,
                    members={"chat": mirror.home_chat_id, **act},
                    done=move_on,
                    refused=partial(_refused_own_act, mirror.chat_id, entry, move_on),
                )
                return
            move_on()
        mirror.sent_seq = logged[-1].seq


def _refused_act(move_on: Callable[[], object], refusal: PostRefusal) -> None:
    logger.warning("the home of a chat refused an act of a guest with %s", refusal.status)
    move_on()


def _refused_own_act(
    chat_id: str, entry: LoggedEvent, move_on: Callable[[], object], refusal: PostRefusal
) -> None:
    chats.take_back(chat_id, entry)
    _refused_act(move_on, refusal)


def _sent_act(mirror_pk: int, seq: int) -> None:
    ChatMirror.objects.filter(pk=mirror_pk, sent_seq__lt=seq).update(sent_seq=seq)


def _entries(peer: Peer, follower: ChatFollower) -> Iterator[_UnknownContent]:
    """Yield the next entry of a chat that a peer may know; move its cursor past the others.

    Once no guest of the peer is in the chat, it knows the log up to where the last one left.
    """
    chat_id, after = follower.chat_id, follower.sent_seq
    guests = list(Guest.objects.filter(peer=peer).values_list("user_id", flat=True))
    people = people_of(chat_id)
    rows = ChatFollower.objects.filter(pk=follower.pk)
    until = None
    if not {user.pk for user in people} & set(guests):
        until = last_leaving(chat_id, guests)
    place = after
    while logged := events_after(chat_id, place):
        for entry in logged:
            if until is not None and entry.seq > until:
                rows.delete()
                return
            if entry.type in entries.RELAYED:
                is_last = until is not None and entry.seq >= until
                yield _entry(peer, follower, people, after, entry, is_last=is_last)
                return
        place = logged[-1].seq


def _entry(
    peer: Peer,
    follower: ChatFollower,
    people: list[User],
    after: int,
    entry: LoggedEvent,
    *,
    is_last: bool,
) -> _UnknownContent:
    rows = ChatFollower.objects.filter(pk=follower.pk)
    author = entries.author_of(entry)
    chat_id = follower.chat_id
    title, only_owners_pin = title_and_pin_rule(chat_id)
    event, files = entries.relayed(entry)
    members: dict[str, Any] = {
        "chat": chat_id,
        "epoch": epoch_of(chat_id),
        "start": follower.first_seq,
        "after": after,
        "seq": entry.seq,
        "title": title,
        "only_owners_pin": only_owners_pin,
        "members": accounts.remote_people(peer, people[:MAX_MEMBERS]),
        "event": event,
        "files": msgspec.to_builtins(files),
    }
    if author is not None:
        (members["author"],) = accounts.remote_people(peer, [author])

    # Another place means that a guest has joined again meanwhile.
    unchanged = rows.filter(sent_seq=after)

    def done() -> None:
        if is_last:
            unchanged.delete()
        else:
            unchanged.update(sent_seq=entry.seq, held_until=None)
        if follower.held_until is not None:
            registry.clear_refused_entry(peer.pk)

    def refused(refusal: PostRefusal) -> None:
        logger.warning("%s refused an entry of a chat with %s", peer.did, refusal.status)
        if refusal.status in _GONE:
            rows.delete()
            registry.clear_refused_entry(peer.pk)
        else:
            rows.update(held_until=timezone.now() + timedelta(seconds=MAX_RETRY_AFTER))
            registry.note_refused_entry(peer.pk, refusal.status)

    return _UnknownContent(
        intent=Intent.NOTIFY,
        members=members,
        done=done,
        refused=refused,
        # After a gap the peer asks for the entries before this one (`subscribe`).
        passing=frozenset({HTTPStatus.CONFLICT}),
        hold=_holding(follower) if files else None,
    )
