"""Queueing of turns while answers run in their chat; `queued_turns` starts them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings

import uamp
from agents_app.rest.rights import agent_restriction, chat_restriction
from sessions_app import database
from sessions_app.inputs.media import check_takeable
from sessions_app.queue import rows
from sessions_app.queue.files import named_contents
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.turn.facts import QueueFacts
    from sessions_app.turn.request import TurnRequest

_MEDIA = ev.InputImage | ev.InputAudio | ev.InputVideo | ev.InputFile
MAX_FILES: Final = 20
"""The most files of a message to a chat of another server."""
ENVELOPE_BYTES: Final = 32_000
"""Allowance for the events of a turn besides its text: names, file addresses, a format."""


async def queued(request: TurnRequest, facts: QueueFacts) -> bool:
    """Queue a turn; return False if no answer is running in its chat and it can start now.

    Raises RemoteProtocolError.
    """
    session, create = request.session, request.create
    user_id = session.principal.user_id
    if not session.is_shared or user_id is None or create.replaces is not None:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT, "Only a message to a shared chat can be queued."
        )
    if not facts.is_member:
        raise RemoteProtocolError(
            ErrorCode.CHAT_NOT_FOUND, "There is no such chat, or you are not in it."
        )
    inputs = [uamp.to_dict(_without_token(input_event)) for input_event in request.inputs]
    text = "\n".join(
        input_event.text for input_event in request.inputs if isinstance(input_event, ev.InputText)
    )
    size = sum(len(uamp.encode(input_event).encode()) for input_event in request.inputs)
    size += len(uamp.encode(create).encode())
    if size > settings.UAMP_MESSAGE_BYTES + ENVELOPE_BYTES:
        raise RemoteProtocolError(
            ErrorCode.EVENT_TOO_LARGE,
            "The message is too large to be queued. Upload its files first.",
        )
    new = rows.NewQueuedTurn(
        chat_id=session.chat_id,
        session_id=session.id,
        user_id=user_id,
        event_id=request.event_id,
        sha256=request.sha256,
        inputs=inputs,
        create=uamp.to_dict(create),
        text=text,
        files=sum(isinstance(input_event, _MEDIA) for input_event in request.inputs),
        credential=session.principal.credential,
        key_version=session.principal.key_version,
        actors=session.principal.actors,
        agents=agent_restriction(session.principal.rights),
        chats=chat_restriction(session.principal.rights),
        servers=session.principal.servers,
        pending_input_ids=request.pending_input_ids,
        is_elsewhere=session.home is not None,
    )
    if new.is_elsewhere:
        _check_travels(request, inputs)
    elif not facts.is_busy:
        return False
    named = [content_id for content_id, _ in named_contents(inputs) if content_id is not None]
    await database.run(check_takeable, named, session.principal, chat_id=session.chat_id)
    if request.admit is not None:
        # The text counts on queueing; answers after the first count on starting.
        await request.admit(1, size)
    try:
        return await database.run(partial(rows.add, new))
    except rows.QueueIsFull as error:
        raise RemoteProtocolError(ErrorCode.QUEUE_FULL, str(error)) from None
    except rows.EventIdReused:
        raise RemoteProtocolError(
            ErrorCode.EVENT_ID_CONFLICT, "This event_id was used for another event."
        ) from None


def _without_token(event: ev.InputEvent) -> ev.InputEvent:
    """Return an input without the secret of its payment token, which the session has taken."""
    if isinstance(event, ev.InputText) and event.payment_token is not None:
        return msgspec.structs.replace(event, payment_token=None)
    return event


def _check_travels(request: TurnRequest, inputs: Sequence[dict[str, Any]]) -> None:
    """Raise RemoteProtocolError unless a message can be sent to the home of its chat."""
    if agent_restriction(request.session.principal.rights) is not None:
        raise RemoteProtocolError(
            ErrorCode.FORBIDDEN,
            "The chat belongs to another server, which decides which agents answer. This credential"
            " is limited to certain agents.",
        )
    in_thread = any(input_event.thread is not None for input_event in request.inputs)
    if request.attachments or in_thread or request.create.replaces is not None:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            "The chat is hosted on another server, which takes no threads or new versions.",
        )
    ids = [content_id for content_id, _ in named_contents(inputs)]
    if None in ids or len(ids) > MAX_FILES:
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            "The chat is hosted on another server. Upload the files of a message first, at most"
            f" {MAX_FILES}.",
        )
