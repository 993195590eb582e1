"""The state that the clients and agents of a chat share (`uamp.shared_state`). Synchronous.

Changes are entries of the chat's log, so that each member receives them once and in order; the row
holds their result. Access is not checked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

import uamp
from chat_app.ids import new_event_id
from chat_app.log.entries import NewEvent, append, lock_chats, milliseconds
from chat_app.models import SharedState
from uamp import events as ev
from uamp import shared_state
from uamp.shared_state import VersionedState

if TYPE_CHECKING:
    from uamp.shared_state import StateChange


def read_state(chat_id: str) -> VersionedState:
    """Return the state of a chat; it starts empty with version 0."""
    row = SharedState.objects.filter(pk=chat_id).first()
    return VersionedState() if row is None else VersionedState(value=row.value, version=row.version)


def write_state(
    chat_id: str,
    change: StateChange,
    *,
    user_id: int | None = None,
    agent: str | None = None,
    response_id: str = "",
) -> VersionedState:
    """Change the state of a chat, append `state.updated` and return the state.

    The event is sent on commit. A change without effect writes nothing. Raises RemoteProtocolError
    as `uamp.shared_state.change_state` does.
    """
    now = timezone.now()
    with transaction.atomic():
        lock_chats([chat_id])
        before = read_state(chat_id)
        changed = shared_state.change_state(before, change)
        if changed is None:
            return before
        state = changed.now
        SharedState.objects.update_or_create(
            chat_id=chat_id, defaults={"value": state.value, "version": state.version}
        )
        event = ev.StateUpdated(
            event_id=new_event_id(),
            timestamp=milliseconds(now),
            chat_id=chat_id,
            version=state.version,
            patch=changed.patch,
            user_id=None if user_id is None else str(user_id),
            agent=agent,
            response_id=response_id or None,
        )
        entry = NewEvent(
            type=uamp.type_of(event), payload=uamp.to_dict(event), response_id=response_id
        )
        append(chat_id, [entry], at=now)
    return state
