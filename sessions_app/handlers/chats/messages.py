"""A member's actions on messages of the session's chat: edit, delete, pin, react (additions).

The chat receives each action as a log entry. The sender gets a reply only where that entry does not
reach them: in sessions that did not name a chat, and for actions without effect.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings

from chat_app.conversation import errors
from chat_app.conversation.deletion import delete_message
from chat_app.conversation.pins import pin_message, unpin_message
from chat_app.conversation.reactions import add_reaction, remove_reaction
from chat_app.conversation.revisions import edit_message
from sessions_app import database
from sessions_app.connection.rate_limit import check_rate, check_text
from sessions_app.handlers.turns.turns import regenerate_answers
from sessions_app.turn.versions import edit_question
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable

    import uamp
    from sessions_app.connection.attached_session import AttachedSession
    from sessions_app.connection.client_connection import ClientConnection

    Pinning = ev.MessagePin | ev.MessageUnpin
    Reacting = ev.ReactionAdd | ev.ReactionRemove
    Act = ev.MessageEdit | ev.MessageDelete | Pinning | Reacting


async def take_edit(connection: ClientConnection, event: ev.MessageEdit) -> None:
    """Edit the sender's own message and, on request, have it answered again."""
    attached = await _admitted(connection, event)
    size = size_of_edit(event.content)
    session = attached.session
    await check_text(connection, session.principal, size, session.wire_id)
    if not event.ask_again:
        edit = partial(edit_message, content=event.content, revision=event.revision)
        await _act(connection, attached, event, edit)
        return
    await check_rate(connection, session.principal, "responses", session.wire_id)
    answers: list[str] = []

    def edit_and_ask(**of: Any) -> uamp.Event:
        outcome = edit_question(
            content=event.content,
            revision=event.revision,
            session_id=session.id,
            event_id=event.event_id,
            **of,
        )
        answers.extend(outcome.answer_ids)
        return outcome.edited

    await _act(connection, attached, event, edit_and_ask)
    await regenerate_answers(connection, attached, event, answers)


def size_of_edit(content: str) -> int:
    """Return the bytes of a message's new text; raises RemoteProtocolError event_too_large."""
    size = len(content.encode())
    if size > settings.UAMP_MESSAGE_BYTES:
        raise RemoteProtocolError(
            ErrorCode.EVENT_TOO_LARGE,
            f"The text of a message may have at most {settings.UAMP_MESSAGE_BYTES} bytes,"
            f" and this has {size}.",
        )
    return size


async def take_deletion(connection: ClientConnection, event: ev.MessageDelete) -> None:
    """Delete the sender's own message or, as an owner of the chat, any message."""
    attached = await _admitted(connection, event)
    await _act(connection, attached, event, delete_message)


async def take_pin(connection: ClientConnection, event: Pinning) -> None:
    """Pin or unpin a message."""
    attached = await _admitted(connection, event)
    act = pin_message if isinstance(event, ev.MessagePin) else unpin_message
    await _act(connection, attached, event, act)


async def take_reaction(connection: ClientConnection, event: Reacting) -> None:
    """Add an emoji reaction to a message, or remove it."""
    attached = await _admitted(connection, event)
    act = add_reaction if isinstance(event, ev.ReactionAdd) else remove_reaction
    await _act(connection, attached, event, partial(act, emoji=event.emoji))


async def _admitted(connection: ClientConnection, event: Act) -> AttachedSession:
    """Return the session of an action, which counts as a write and must be in its own chat."""
    attached = connection.attached_to(event)
    session = attached.session
    if event.chat_id is not None and event.chat_id != session.chat_id:
        raise RemoteProtocolError(ErrorCode.CHAT_NOT_FOUND, "This session belongs to another chat.")
    await check_rate(connection, session.principal, "writes", session.wire_id)
    return attached


async def _act(
    connection: ClientConnection,
    attached: AttachedSession,
    event: Act,
    act: Callable[..., uamp.Event],
) -> None:
    session = attached.session
    work = partial(
        act,
        chat_id=session.chat_id,
        message_id=event.message_id,
        user_id=session.principal.user_id,
    )
    try:
        done = await database.run(work)
    except Exception as error:
        if (refusal := _refusal(error)) is None:
            raise
        raise refusal from None
    if done.seq is None or not session.chat_scoped:
        connection.reply(done, session_id=session.wire_id, in_reply_to=event.event_id)


def _refusal(error: Exception) -> RemoteProtocolError | None:
    """Convert a refused action to its protocol error; None for other errors."""
    match error:
        case errors.MessageNotFound():
            code, words = ErrorCode.MESSAGE_NOT_FOUND, "There is no such message in this chat."
        case errors.NotTheAuthor():
            code, words = ErrorCode.FORBIDDEN, "The message belongs to another member."
        case errors.RevisionConflict() | errors.ChatWentOn():
            code, words = ErrorCode.MESSAGE_CONFLICT, str(error)
        case errors.TooManyRevisions():
            code = ErrorCode.QUOTA_EXCEEDED
            words = f"A message can be edited at most {settings.UAMP_MESSAGE_REVISIONS} times."
        case errors.EmptyMessage():
            code, words = ErrorCode.INVALID_EVENT, "A message needs text or a file."
        case errors.NotAnEmoji():
            code, words = ErrorCode.INVALID_EVENT, "A reaction must be one emoji."
        case errors.TooManyReactions():
            code, words = (
                ErrorCode.QUOTA_EXCEEDED,
                "The message has the maximum number of reactions.",
            )
        case errors.PinsAreTheOwners():
            code, words = ErrorCode.FORBIDDEN, str(error)
        case errors.TooManyPins():
            code, words = (
                ErrorCode.QUOTA_EXCEEDED,
                "The chat has the maximum number of pins. Unpin one first.",
            )
        case _:
            return None
    return RemoteProtocolError(code, words)
