"""All changes to a chat's queue, made under the lock of the chat. Synchronous.

After each change the members receive the new state of the queue (`queue.updated`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Min, OuterRef, Q
from django.utils import timezone

import uamp
from agents_app.rest.rights import restricted_rights
from chat_app.log import fanout
from chat_app.log.entries import lock_chats
from chat_app.members.membership import has_left_freely, is_member, is_owner
from sessions_app.access import keys
from sessions_app.access.stored_keys import ended_actors
from sessions_app.inputs.rows import consume_inputs
from sessions_app.models import KEY_CREDENTIAL, InboundEvent, QueuedTurn, Response, Session
from sessions_app.queue.reading import queue_of
from sessions_app.session_states import session_like
from sessions_app.states import QueuedTurnState, QueuedTurnTrigger
from sessions_app.transitions import move, move_one

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from django.db.models import QuerySet
    from django.db.models.functions import Now

    from agents_app.rest.rights import Rights
    from sessions_app.access.principal import Principal

CLAIM_SECONDS: Final = 60
"""A process that has not started its claim within this time is presumed dead."""
ATTEMPTS: Final = 40
"""How often a message is tried whose turn is refused for a temporary reason."""
_KEY_ENDED: Final = (
    "The key that sent this message was revoked or has expired, or its secret was replaced."
    " Send it again."
)
MORE_RIGHTS: Final = (
    "The message was queued with a credential that may do more than this one, or has another"
    " budget. Use that one."
)
_SENDER_GONE: Final = "The sender was removed from the chat, or deactivated."
_NEVER_STARTED: Final = "The server could not send this message. Send it again."
CHATS_AT_ONCE: Final = 50
"""How many chats a process handles per round."""


class QueueIsFull(Exception):
    """The queue limit is reached; the message is for the person."""


class NoSuchQueuedTurn(LookupError):
    """The chat has no such queued message, or the person is not a member of it."""


class NotTheirs(PermissionError):
    """The message is another person's."""


class MoreRights(PermissionError):
    """The message was queued with a credential that may do more than the one that starts it."""


class EventIdReused(ValueError):
    """The event id was used for another event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQueuedTurn:
    """A turn to be queued, with the client's events as sent."""

    chat_id: str
    session_id: str
    user_id: int
    event_id: str
    sha256: str
    inputs: Sequence[dict[str, Any]]
    create: dict[str, Any]
    text: str
    files: int
    credential: str = ""
    key_version: int = 0
    actors: Sequence[tuple[str, int]] = ()
    servers: int = 0
    agents: Sequence[str] | None = None
    chats: Sequence[str] | None = None
    pending_input_ids: Sequence[int] = ()
    # Whether the chat is a mirror: messages wait until its home has ordered them (ADR 66).
    is_elsewhere: bool = False


def actors_of(row: QueuedTurn) -> tuple[tuple[str, int], ...]:
    """Return the principals who passed the sender's token on (Principal.actors)."""
    return tuple((str(credential), int(version)) for credential, version in row.actors)


def rights_of(row: QueuedTurn) -> Rights:
    """Return the rights with which a queued message is sent."""
    return restricted_rights(row.agents, row.chats)


def has_ended(row: QueuedTurn) -> bool:
    """Return whether a credential with which a message was queued is no longer valid.

    These are the key, its secret of then, and the credentials that passed its token on.
    """
    secrets = set(actors_of(row))
    if row.key_version is not None and row.credential.startswith(KEY_CREDENTIAL):
        secrets.add((row.credential, row.key_version))
    return not keys.is_in_force(row.credential) or bool(ended_actors(secrets))


def is_busy(chat_id: str) -> bool:
    """Return whether answers are running or messages are queued in a chat."""
    queue = QueuedTurn.objects.filter(chat_id=chat_id).exclude(status=QueuedTurnState.FAILED)
    return queue.exists() or _answers(chat_id).exists()


def add(new: NewQueuedTurn) -> bool:
    """Queue a turn; return False if no answer is running or the turn was started before.

    Repeating the same event has no effect. Raises QueueIsFull and EventIdReused.
    """
    with transaction.atomic():
        lock_chats([new.chat_id])
        existing = QueuedTurn.objects.filter(
            session_id=new.session_id, event_id=new.event_id
        ).first()
        if existing is not None:
            if existing.sha256 != new.sha256:
                raise EventIdReused
            return True
        rows = QueuedTurn.objects.filter(chat_id=new.chat_id)
        is_started = InboundEvent.objects.filter(
            session_id=new.session_id, event_id=new.event_id
        ).exists()
        if is_started or not (new.is_elsewhere or is_busy(new.chat_id)):
            return False
        of_person, of_chat = settings.UAMP_QUEUED_PER_USER, settings.UAMP_QUEUED_PER_CHAT
        if rows.filter(user_id=new.user_id).count() >= of_person:
            raise QueueIsFull(f"At most {of_person} of your messages wait in a chat.")
        if rows.count() >= of_chat:
            raise QueueIsFull(f"At most {of_chat} messages wait in a chat.")
        QueuedTurn.objects.create(
            chat_id=new.chat_id,
            session_id=new.session_id,
            user_id=new.user_id,
            event_id=new.event_id,
            sha256=new.sha256,
            inputs=list(new.inputs),
            create=new.create,
            text=new.text,
            files=new.files,
            credential=new.credential,
            key_version=new.key_version,
            actors=list(new.actors),
            servers=new.servers,
            agents=None if new.agents is None else list(new.agents),
            chats=None if new.chats is None else list(new.chats),
        )
        if new.pending_input_ids:
            led_to: dict[str, Any] = {"message_id": None, "response_ids": [], "first_seq": 0}
            consume_inputs(new.pending_input_ids, at=timezone.now(), outcome=led_to)
        _publish(new.chat_id)
    return True


def remove(chat_id: str, item_id: str, by: Principal) -> None:
    """Remove the person's own message or, as an owner of the chat, any message.

    Raises NotTheirs, and NoSuchQueuedTurn, including when the turn is already being started.
    """
    with transaction.atomic():
        row = _row(chat_id, item_id, by.user_id)
        if row.user_id != by.user_id and not is_owner(chat_id, by.user_id):
            raise NotTheirs
        if row.status == QueuedTurnState.STARTING:
            raise NoSuchQueuedTurn
        row.delete()
        _publish(chat_id)


def start_now(chat_id: str, item_id: str, by: Principal) -> None:
    """Send the person's own message alongside running answers, or retry a failed one.

    Raises NoSuchQueuedTurn, NotTheirs, and MoreRights if the credential `by` could not send it.
    """
    with transaction.atomic():
        row = _row(chat_id, item_id, by.user_id)
        if row.user_id != by.user_id:
            raise NotTheirs
        if not _may_send(by, row):
            raise MoreRights
        now = timezone.now()
        rows = QueuedTurn.objects.filter(pk=row.pk)
        if move(
            rows, QueuedTurnTrigger.ASK, waits=False, due_at=now, attempts=0, code="", reason=""
        ):
            _publish(chat_id)


def _may_send(by: Principal, row: QueuedTurn) -> bool:
    """Return whether a credential covers the agents, chats and budget of a queued message.

    One with a budget sends only what counts against it.
    """
    sent_with = replace(
        rights_of(row),
        scopes=by.rights.scopes,
        protocols=by.rights.protocols,
        has_budget=row.credential == by.credential,
    )
    return by.rights.includes(sent_with)


def waiting_elsewhere(chat_ids: Collection[str]) -> dict[str, QueuedTurn]:
    """Return the next message of each mirror that its home has not accepted yet.

    Those that may no longer be sent fail instead, or are deleted if their sender has left.
    """
    waiting = QueuedTurn.objects.filter(chat_id__in=chat_ids, status=QueuedTurnState.QUEUED)
    firsts = waiting.values("chat_id").annotate(first=Min("pk")).values("first")
    sendable = {}
    for row in QueuedTurn.objects.filter(pk__in=firsts).select_related("user"):
        reason = _end_reason(row)
        if reason is None:
            sendable[row.chat_id] = row
            continue
        with transaction.atomic():
            lock_chats([row.chat_id])
            _stop(waiting.filter(pk=row.pk), row, reason)
    return sendable


def accepted_elsewhere(row: QueuedTurn) -> None:
    """Note that the home of a mirror has a message; it waits for its place in the log."""
    with transaction.atomic():
        lock_chats([row.chat_id])
        move(QueuedTurn.objects.filter(pk=row.pk), QueuedTurnTrigger.CLAIM)


def refuse_elsewhere(row: QueuedTurn, code: str, reason: str) -> None:
    """Keep a message that the home of its chat has refused, as failed."""
    with transaction.atomic():
        lock_chats([row.chat_id])
        _fail(QueuedTurn.objects.filter(pk=row.pk), code, reason)
        _publish(row.chat_id)


def find_waiting(chat_id: str, pk: int, *, user_id: int | None = None) -> QueuedTurn | None:
    """Return a message that waits in a mirror, of any person or of one."""
    rows = QueuedTurn.objects.filter(chat_id=chat_id, pk=pk).select_related("user")
    return (rows if user_id is None else rows.filter(user_id=user_id)).first()


def ordered_elsewhere(chat_id: str, pk: int, message_id: str, seq: int) -> None:
    """Replace a message that waits in a mirror by the one in its log, in the same transaction.

    The client's event is recorded, so that repeating it has no effect.
    """
    row = QueuedTurn.objects.get(chat_id=chat_id, pk=pk)
    outcome: dict[str, Any] = {"message_id": message_id, "response_ids": [], "first_seq": seq}
    InboundEvent.objects.get_or_create(
        session_id=row.session_id,
        event_id=row.event_id,
        defaults={"sha256": row.sha256, "outcome": outcome},
    )
    row.delete()
    _publish(chat_id)


def due_chats(now: datetime) -> list[str]:
    """Return the chats with a message that may be sent now."""
    return list(due(now).values_list("chat_id", flat=True).distinct()[:CHATS_AT_ONCE])


def due(now: datetime | Now) -> QuerySet[QueuedTurn]:
    """Return the messages that may be sent now, or after others of their chat."""
    rows = QueuedTurn.objects.filter(
        Q(waits=False) | ~Exists(_answers(OuterRef("chat_id"))),
        due_at__lte=now,
        chat__home__isnull=True,
    )
    return rows.exclude(status=QueuedTurnState.FAILED)


def claim(chat_id: str, now: datetime) -> QueuedTurn | None:
    """Claim the next message of a chat that may be sent now.

    No other process may send it for CLAIM_SECONDS. Its session is replaced if it has ended.
    """
    with transaction.atomic():
        lock_chats([chat_id])
        rows = (
            QueuedTurn.objects.filter(chat_id=chat_id)
            .exclude(status=QueuedTurnState.FAILED)
            .select_related("session__chat", "session__agent", "user")
            .order_by("id")
        )
        first_due = rows.filter(waits=False, due_at__lte=now).first()
        first = rows.first()
        if first is not None and (first.due_at > now or _answers(chat_id).exists()):
            first = None
        row = first_due or first
        if row is None:
            return None
        if (reason := _end_reason(row)) is not None:
            _stop(QueuedTurn.objects.filter(pk=row.pk), row, reason)
            return None
        if row.attempts >= ATTEMPTS:
            # Something ended each process or connection that tried.
            _fail(QueuedTurn.objects.filter(pk=row.pk), "internal_error", _NEVER_STARTED)
            _publish(chat_id)
            return None
        if row.session.status not in Session.OPEN:
            row.session = session_like(row.session)
        until = now + timedelta(seconds=CLAIM_SECONDS)
        move_one(
            QueuedTurn.objects.filter(pk=row.pk),
            QueuedTurnTrigger.CLAIM,
            due_at=until,
            attempts=row.attempts + 1,
            session=row.session,
        )
        row.attempts += 1
        return row


def started(row: QueuedTurn) -> None:
    """Remove a message whose turn has been written."""
    with transaction.atomic():
        lock_chats([row.chat_id])
        if QueuedTurn.objects.filter(pk=row.pk).delete()[0]:
            _publish(row.chat_id)


def refused(row: QueuedTurn, code: str, reason: str, *, retry_after: float | None) -> None:
    """Keep a message whose turn was refused: retry after `retry_after` seconds, or fail."""
    with transaction.atomic():
        lock_chats([row.chat_id])
        rows = QueuedTurn.objects.filter(pk=row.pk)
        if retry_after is not None and row.attempts < ATTEMPTS:
            due_at = timezone.now() + timedelta(seconds=retry_after)
            move(rows, QueuedTurnTrigger.RELEASE, due_at=due_at)
            return
        _fail(rows, code, reason)
        _publish(row.chat_id)


def _end_reason(row: QueuedTurn) -> str | None:
    """Return why a message may no longer be sent; None if it may."""
    if not row.user.is_active or not is_member(row.chat_id, row.user_id):
        return _SENDER_GONE
    return _KEY_ENDED if has_ended(row) else None


def _stop(rows: QuerySet[QueuedTurn], row: QueuedTurn, reason: str) -> None:
    """Fail a message, or delete it if its sender has left the chat of their own accord."""
    if row.user.is_active and has_left_freely(row.chat_id, row.user_id):
        rows.delete()
    else:
        _fail(rows, "unauthorized", reason)
    _publish(row.chat_id)


def _fail(rows: QuerySet[QueuedTurn], code: str, reason: str) -> None:
    move(rows, QueuedTurnTrigger.FAIL, code=code, reason=reason[:500], waits=True)


def _row(chat_id: str, item_id: str, user_id: int | None) -> QueuedTurn:
    lock_chats([chat_id])
    if not item_id.isascii() or not item_id.isdecimal() or len(item_id) > 18:  # noqa: PLR2004 the digits of a bigint
        raise NoSuchQueuedTurn
    row = QueuedTurn.objects.filter(chat_id=chat_id, pk=int(item_id)).first()
    if row is None or not is_member(chat_id, user_id):
        raise NoSuchQueuedTurn
    return row


def _answers(chat_id: Any) -> Any:
    """Return the answers running in a chat."""
    return Response.objects.filter(chat_id=chat_id, finished_at__isnull=True)


def _publish(chat_id: str) -> None:
    signal = fanout.signal_message(chat_id=chat_id, frame=uamp.encode(queue_of(chat_id)))
    fanout.publish_on_commit(chat_id, [signal])
