"""An answer that is made again: a turn without a message, whose answer takes the place of another.

The person who asks for it is its asker: it is paid as an answer to a new question is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.conf import settings

from chat_app.conversation import errors, versions
from chat_app.log import history
from sessions_app import database, services
from sessions_app.models import Response
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from chat_app.log.history import HistoryMessage
    from sessions_app.records import OpenSession
    from sessions_app.turn.request import TurnRequest


class ReplacedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer whose place another one takes: first version, agent, question and thread."""

    first_id: str
    agent_id: str
    question_id: str
    thread: str | None


async def replaced_answer(request: TurnRequest) -> ReplacedAnswer | None:
    """Return the answer that a turn makes again, None for another turn.

    Raises RemoteProtocolError.
    """
    message_id, config = request.create.replaces, request.create.response
    if message_id is None:
        return None
    if request.inputs or (config is not None and config.messages is not None):
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT, "An answer that replaces another one takes no inputs."
        )
    session = request.session
    if session.is_shared and not await database.run(services.is_member, session):
        raise RemoteProtocolError(
            ErrorCode.CHAT_NOT_FOUND, "There is no such chat, or you are not in it."
        )
    try:
        return await database.run(_replaced, session, message_id)
    except errors.MessageNotFound:
        code, words = ErrorCode.MESSAGE_NOT_FOUND, "There is no such current answer in this chat."
    except errors.NotTheAuthor:
        code, words = ErrorCode.FORBIDDEN, "Another member asked for this answer."
    except errors.ChatWentOn:
        code, words = ErrorCode.MESSAGE_CONFLICT, "A later question follows this answer."
    raise RemoteProtocolError(code, words)


def _replaced(session: OpenSession, message_id: str) -> ReplacedAnswer:
    answer = versions.current_answer(session.chat_id, message_id)
    answered = Response.objects.filter(pk=answer.response_id, chat_id=session.chat_id)
    question_id = versions.check_question(
        session.chat_id,
        answered.values_list("message_id", flat=True).first(),
        session.principal.user_id,
    )
    return ReplacedAnswer(
        first_id=answer.first_id,
        agent_id=answer.agent_id,
        question_id=question_id,
        thread=answer.thread,
    )


async def conversation(
    session: OpenSession, replaced: ReplacedAnswer, thread: str | None = None
) -> list[HistoryMessage]:
    """Return the messages up to the question of an answer that is made again, oldest first.

    They are those of the chat, or of a thread.
    """
    return await database.run(
        history.history_until,
        session.chat_id,
        message_id=replaced.question_id,
        limit=settings.UAMP_HISTORY_MESSAGES,
        thread=thread,
    )
