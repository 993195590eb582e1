"""The thread that a turn belongs to, and its messages as agents see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.conf import settings

from chat_app.conversation import errors
from chat_app.conversation.threads import thread_root
from chat_app.log import history
from sessions_app import database
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from chat_app.log.history import HistoryMessage
    from sessions_app.turn.request import TurnRequest
    from sessions_app.turn.versions import ReplacedAnswer


class TurnThread(msgspec.Struct, frozen=True, kw_only=True):
    """The root of a turn's thread, and whether its message also appears in the chat."""

    root_id: str
    also_in_chat: bool = False


def names_thread(request: TurnRequest) -> bool:
    """Return whether the inputs of a turn name its thread, which `thread_of` has to read."""
    return request.thread is None and any(
        input_event.thread is not None for input_event in request.inputs
    )


def thread_of(request: TurnRequest, replaced: ReplacedAnswer | None) -> TurnThread | None:
    """Return the thread of a turn, from its inputs or from the answer that caused it. Synchronous.

    Raises RemoteProtocolError message_not_found if the root was deleted or is not in the session's
    chat, and thread_nested if the root is itself in a thread.
    """
    root_id = request.thread if replaced is None else replaced.thread
    if root_id is not None:
        return TurnThread(root_id=root_id)
    input_event = next((event for event in request.inputs if event.thread is not None), None)
    if input_event is None or input_event.thread is None:
        return None
    try:
        root_id = thread_root(request.session.chat_id, input_event.thread)
    except errors.MessageNotFound:
        code, words = (
            ErrorCode.MESSAGE_NOT_FOUND,
            "No message in this chat starts that thread.",
        )
    except errors.ThreadNested:
        code, words = ErrorCode.THREAD_NESTED, "The message of that thread is itself in a thread."
    else:
        return TurnThread(root_id=root_id, also_in_chat=input_event.also_in_chat)
    raise RemoteProtocolError(code, words)


async def thread_before(chat_id: str, root_id: str | None, seq: int | None) -> list[HistoryMessage]:
    """Return a thread's root and its last replies before a log position, oldest first.

    Returns nothing outside a thread. Without a position, all replies are eligible.
    """
    if root_id is None:
        return []
    limit = settings.UAMP_HISTORY_MESSAGES
    return await database.run(history.thread_history, chat_id, root_id, limit=limit, before=seq)
