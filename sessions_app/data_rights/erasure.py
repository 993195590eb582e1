"""Erasure of a person: chats, sessions, keys, files, profile and name. Synchronous.

The account is closed first, so that nothing is added in the meantime. Each chat is a separate
transaction; an interrupted erasure can be restarted and continues.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from audit_app.record import AuditAction, record
from chat_app import repeats
from chat_app.conversation import erasure as chats
from payments_app.tokens import endings
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
"""The default of `wait`."""
PREFIX: Final = "erased-"


_others: Final[list[Callable[[User], None]]] = []


def also_note(note: Callable[[User], None]) -> None:
    """Let a higher-level app note in the last transaction that a person is erased."""
    if note not in _others:
        _others.append(note)


class StillRunning(Exception):
    """Some of the person's answers have not ended; restart the erasure later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The result of an erasure: the account's new name, and the amount of erased data."""

    pseudonym: str
    chats_deleted: int
    messages: int
    files: int


def erase_person(
    user: User,
    *,
    reason: str,
    by: User | None = None,
    wait: float = WAIT_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> Erasure:
    """Erase a person; raises StillRunning, after which it can be restarted.

    `wait` is how many seconds the person's cancelled answers may take to end.

    The account's row remains, without name, address, rights or password, because the ledger, the
    audit log and the positions of messages refer to it.
    """
    _close(user)
    _end_answers(user, wait, sleep)
    pseudonym = user.username if user.username.startswith(PREFIX) else _new_pseudonym()
    deleted = _delete_alone(chats.chats_alone(user.pk), user)
    messages = 0
    for chat_id in chats.chats_of(user.pk):
        messages += chats.erase_in_chat(user.pk, chat_id=chat_id, pseudonym=pseudonym)
        _erase_answers(chat_id, user)
        chats.leave(chat_id, user)
        # The log entry for leaving contains the name as well.
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
        for note in _others:
            note(user)
        record(by, AuditAction.PERSON_ERASED, user, reason=reason)
    return Erasure(pseudonym=pseudonym, chats_deleted=deleted, messages=messages, files=files)


def _new_pseudonym() -> str:
    return f"{PREFIX}{secrets.token_hex(6)}"


def _close(user: User) -> None:
    """Close the account; its sockets and streams end within seconds (`access.auth`)."""
    with transaction.atomic():
        user.is_active = user.is_staff = user.is_superuser = False
        user.set_unusable_password()
        user.save()
        user.groups.clear()
        user.user_permissions.clear()
        ApiKey.objects.filter(user=user).delete()
        Ticket.objects.filter(user=user).delete()
        endings.revoke_all(user.pk)
        repeats.forget_person(user.pk)
        Webhook.objects.filter(user=user).delete()
        EmailAddress.objects.filter(user=user).delete()
        Authenticator.objects.filter(user=user).delete()
        QueuedTurn.objects.filter(user=user).delete()


def _end_answers(user: User, wait: float, sleep: Callable[[float], None]) -> None:
    running = Response.objects.filter(session__user=user, finished_at__isnull=True)
    running.filter(cancel_requested_at__isnull=True).update(
        cancel_requested_at=timezone.now(), cancel_requested_by=user
    )
    deadline = time.monotonic() + wait
    while running.exists():
        if time.monotonic() > deadline:
            raise StillRunning(
                "Answers that this person asked for are still running. Try again once a server"
                " process has ended them."
            )
        sleep(0.2)


def _delete_alone(chat_ids: list[str], user: User) -> int:
    """Delete chats that no other person was ever in; if money was involved, the row remains."""
    deleted = 0
    for chat_id in chat_ids:
        deleted += delete_private(chats.rows([chat_id]))
    for chat_id in chats.empty_what_is_left(chat_ids):
        _erase_answers(chat_id, user)
    return deleted


def _erase_answers(chat_id: str, user: User) -> None:
    """Erase the conversations sent with answers, and the texts of the person's tool calls.

    A request contains the preceding history, with everyone's words. It is used only while an answer
    runs and to continue from it (`previous_response_id`), which then finds nothing.
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
