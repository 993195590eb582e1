"""Regenerated answers: a turn without a message, whose answer replaces another.

The person who requests it pays, as for the answer to a new question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from django.db import transaction

from chat_app.conversation import errors, versions
from chat_app.conversation.revisions import edit_message
from chat_app.log import history
from sessions_app import database
from sessions_app.models import InboundEvent, Response
from sessions_app.response.question import question_hash
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from chat_app.log.history import HistoryMessage
    from sessions_app.records import OpenSession
    from sessions_app.turn.request import TurnRequest


class ReplacedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer being replaced: its first version, agent, question (`question`) and thread."""

    first_id: str
    agent_id: str
    question_id: str
    question_hash: str
    thread: str | None


def check_replaces(request: TurnRequest) -> None:
    """Raise RemoteProtocolError invalid_event for a regenerated answer with inputs."""
    config = request.create.response
    if request.create.replaces is None:
        return
    if request.inputs or (config is not None and config.messages is not None):
        raise RemoteProtocolError(ErrorCode.INVALID_EVENT, "A regenerated answer takes no inputs.")


def read_replaced(session: OpenSession, message_id: str) -> ReplacedAnswer:
    """Return the answer that a turn of the session regenerates. Synchronous.

    Raises RemoteProtocolError: message_not_found, forbidden and message_conflict.
    """
    try:
        return _replaced(session, message_id)
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
    question = versions.check_question(
        session.chat_id,
        answered.values_list("message_id", flat=True).first(),
        session.principal.user_id,
    )
    return ReplacedAnswer(
        first_id=answer.first_id,
        agent_id=answer.agent_id,
        question_id=question.id,
        question_hash=question_hash(*question),
        thread=answer.thread,
    )


class EditedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """An edited question: the edit event and the current answers, first one first."""

    edited: ev.MessageEdited
    answer_ids: list[str]


def edit_question(
    *,
    chat_id: str,
    message_id: str,
    user_id: int | None,
    content: str,
    revision: int | None,
    session_id: str,
    event_id: str | None,
) -> EditedQuestion:
    """Change the text of a question whose answers will be regenerated. Synchronous.

    Changes nothing if they cannot be: raises the errors of `edit_message` and `check_question`, and
    MessageNotFound if there is no answer. The session and the id of the client's event distinguish
    a repeated event from a second edit with the same text, which raises RevisionConflict.
    """
    with transaction.atomic():
        edited = edit_message(
            chat_id=chat_id,
            message_id=message_id,
            user_id=user_id,
            content=content,
            revision=revision,
        )
        responses = Response.objects.filter(chat_id=chat_id, message_id=message_id)
        response_ids = list(responses.values_list("pk", flat=True))
        if revision is not None and edited.seq is None and edited.revision != revision:
            # The same edit again. A process that died after the edit may have started none or only
            # some of the answers; the repeated event starts the rest.
            is_sent_again = InboundEvent.objects.filter(session_id=session_id, event_id=event_id)
            was_asked = versions.was_asked_since_edit(edited, response_ids)
            if was_asked and not is_sent_again.exists():
                raise errors.RevisionConflict(edited.revision)
        versions.check_question(chat_id, message_id, user_id)
        answer_ids = versions.current_answers(chat_id, response_ids)
        if not answer_ids:
            raise errors.MessageNotFound
    return EditedQuestion(edited=edited, answer_ids=answer_ids)


async def conversation(
    session: OpenSession, replaced: ReplacedAnswer, thread: str | None = None
) -> list[HistoryMessage]:
    """Return the messages up to the question of a regenerated answer, oldest first.

    They come from the chat, or from the given thread.
    """
    return await database.run(
        history.history_until,
        session.chat_id,
        message_id=replaced.question_id,
        limit=settings.UAMP_HISTORY_MESSAGES,
        thread=thread,
    )
