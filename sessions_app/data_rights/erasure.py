"""The erasure of a person: chats, sessions, keys, files, profile and name. Synchronous.

The account is closed first, so that nothing is added meanwhile. Each chat is a transaction of its
own; an erasure that was interrupted is begun again and goes on.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from audit_app.record import AuditAction, record
from chat_app.conversation import erasure as chats
from sessions_app.models import (
    ApiKey,
    FollowUp,
    InboundEvent,
    PendingInput,
    QueuedTurn,
    Response,
    Session,
    Ticket,
    ToolCall,
    Webhook,
)
from sessions_app.process.retention import delete_private

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

WAIT_SECONDS: Final = 60.0
"""How long the erasure waits for answers that the person asked for and that were cancelled."""
PREFIX: Final = "erased-"


class StillRunning(Exception):
    """Answers for the person have not ended; the erasure is to be begun again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The result of an erasure: the name that the account has now, and how much there was."""

    pseudonym: str
    chats_deleted: int
    messages: int
    files: int


def erase_person(
    user: User,
    *,
    reason: str,
    by: User | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Erasure:
    """Erase a person; raises StillRunning, after which it can be begun again.

    The row of the account stays, without a name, an address, rights or a password: the ledger, the
    audit and the places of messages name it.
    """
    _close(user)
    _end_answers(user, sleep)
    pseudonym = user.username if user.username.startswith(PREFIX) else _new_pseudonym()
    deleted = _delete_alone(chats.chats_alone(user.pk), user)
    messages = 0
    for chat_id in chats.chats_of(user.pk):
        messages += chats.erase_in_chat(user.pk, chat_id=chat_id, pseudonym=pseudonym)
        _erase_answers(chat_id, user)
        chats.leave(chat_id, user)
        # The entry of leaving has the name too.
        chats.erase_in_chat(user.pk, chat_id=chat_id, pseudonym=pseudonym)
    files = len(chats.content_ids_of(user.pk))
    chats.erase_profile(user.pk)
    _erase_sessions(user)
    with transaction.atomic():
        for log in (AccessAttempt, AccessFailureLog, AccessLog):
            log.objects.filter(username=user.username).delete()
        user.username, user.first_name, user.last_name, user.email = pseudonym, "", "", ""
        user.save()
        LogEntry.objects.filter(content_type__model="user", object_id=str(user.pk)).update(
            object_repr=pseudonym
        )
        record(by, AuditAction.PERSON_ERASED, user, reason=reason)
    return Erasure(pseudonym=pseudonym, chats_deleted=deleted, messages=messages, files=files)


def _new_pseudonym() -> str:
    return f"{PREFIX}{secrets.token_hex(6)}"


def _close(user: User) -> None:
    """Close the account: its sockets and streams end within seconds (`access.auth`)."""
    with transaction.atomic():
        user.is_active = user.is_staff = user.is_superuser = False
        user.set_unusable_password()
        user.save()
        user.groups.clear()
        user.user_permissions.clear()
        ApiKey.objects.filter(user=user).delete()
        Ticket.objects.filter(user=user).delete()
        Webhook.objects.filter(user=user).delete()
        QueuedTurn.objects.filter(user=user).delete()


def _end_answers(user: User, sleep: Callable[[float], None]) -> None:
    running = Response.objects.filter(session__user=user, finished_at__isnull=True)
    running.filter(cancel_requested_at__isnull=True).update(
        cancel_requested_at=timezone.now(), cancel_requested_by=user
    )
    deadline = time.monotonic() + WAIT_SECONDS
    while running.exists():
        if time.monotonic() > deadline:
            raise StillRunning(
                "Answers that the person asked for still run. Begin again once a server process"
                " has ended them."
            )
        sleep(0.2)


def _delete_alone(chat_ids: list[str], user: User) -> int:
    """Delete chats in which no other person ever was; of those with money the row stays."""
    deleted = 0
    for chat_id in chat_ids:
        deleted += delete_private(chats.rows([chat_id]))
    for chat_id in chats.empty_what_is_left(chat_ids):
        _erase_answers(chat_id, user)
    return deleted


def _erase_answers(chat_id: str, user: User) -> None:
    """Take the conversation that answers were given, and the words of calls that were for a person.

    A request has the history before it, with the words of all; it is used while an answer runs and
    to go on from it (`previous_response_id`), which then finds nothing.
    """
    ended = Response.objects.filter(chat_id=chat_id, finished_at__isnull=False)
    ended.exclude(request={}).update(request={})
    theirs = Q(response__session__user=user) | Q(response__message__sender_user=user)
    ToolCall.objects.filter(theirs, response__in=ended).update(
        arguments="{}", result="", content_items=[], progress=None
    )
    FollowUp.objects.filter(theirs, response__in=ended).delete()


def _erase_sessions(user: User) -> None:
    sessions = Session.objects.filter(user=user)
    InboundEvent.objects.filter(session__in=sessions).delete()
    PendingInput.objects.filter(session__in=sessions).delete()
    sessions.update(config={}, client_capabilities=None)
