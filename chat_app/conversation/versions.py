"""Versions of an answer: a new one replaces its predecessor. Synchronous.

All versions are messages of the log. `version_of` of each later version names the first one, and
`replaced_by` of each but the current one names its replacement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from chat_app.conversation.errors import ChatWentOn, MessageNotFound, NotTheAuthor
from chat_app.members.membership import is_owner
from chat_app.members.mentions import forget_mentions
from chat_app.models import ChatEvent, Message, MessageRevision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

    from uamp import events as ev


@dataclass(frozen=True, slots=True)
class CurrentAnswer:
    """An answer that may be regenerated: its first version, its agent, response and thread."""

    first_id: str
    agent_id: str
    response_id: str
    thread: str | None


def current_answer(chat_id: str, message_id: str) -> CurrentAnswer:
    """Return a current answer of a chat; raises MessageNotFound for old versions and questions."""
    row = Message.objects.filter(
        pk=message_id, chat_id=chat_id, deleted_at__isnull=True, replaced_by__isnull=True
    ).first()
    if row is None or row.sender_agent_id is None or not row.response_id:
        raise MessageNotFound
    return CurrentAnswer(row.version_of or row.pk, row.sender_agent_id, row.response_id, row.thread)


class Question(NamedTuple):
    """The parts of a question that an answer's signature covers."""

    id: str
    role: str
    content: str
    content_items: list[dict[str, Any]]
    salt: str | None


def check_question(chat_id: str, question_id: str | None, user_id: int | None) -> Question:
    """Return a question for which a person may have the answer regenerated.

    Its author and the owners of the chat may, until another question follows. Raises
    MessageNotFound, NotTheAuthor and ChatWentOn.
    """
    rows = Message.objects.filter(chat_id=chat_id, deleted_at__isnull=True)
    question = rows.filter(pk=question_id).first()
    if question is None:
        raise MessageNotFound
    if question.sender_user_id != user_id and not is_owner(chat_id, user_id):
        raise NotTheAuthor
    # A thread and the chat around it continue independently of each other.
    conditions = {"thread": question.thread} if question.thread_only else {"thread_only": None}
    if rows.filter(seq__gt=question.seq, role="user", **conditions).exists():
        raise ChatWentOn
    return _question(question)


def last_question(chat_id: str) -> Question | None:
    """Return the last message of a chat that no agent wrote, outside its threads; None if empty."""
    rows = Message.objects.filter(
        chat_id=chat_id, deleted_at__isnull=True, replaced_by__isnull=True, thread_only__isnull=True
    )
    message = rows.exclude(role="assistant").order_by("-seq").first()
    return None if message is None else _question(message)


def question_as_it_is(message_id: str) -> Question | None:
    """Return a message in its current state, for the signature of an answer to it."""
    message = Message.objects.filter(pk=message_id).first()
    return None if message is None else _question(message)


def _question(message: Message) -> Question:
    return Question(message.pk, message.role, message.content, message.content_items, message.salt)


def current_answers(chat_id: str, response_ids: Iterable[str]) -> list[str]:
    """Return the ids of the agents' current answers among those of responses.

    They are ordered by their first versions, so that a new version does not move an answer.
    """
    rows = Message.objects.filter(
        chat_id=chat_id,
        response_id__in=list(response_ids),
        sender_agent__isnull=False,
        replaced_by__isnull=True,
        deleted_at__isnull=True,
    )
    first = Message.objects.filter(pk=OuterRef("version_of")).values("seq")
    rows = rows.annotate(place=Coalesce(Subquery(first), "seq"))
    return list(rows.order_by("place").values_list("pk", flat=True))


def answers_of(response_ids: Iterable[str]) -> dict[str, str]:
    """Return the ids of the messages of responses, by response id."""
    rows = Message.objects.filter(response_id__in=list(response_ids))
    return dict(rows.values_list("response_id", "pk"))


def was_asked_since_edit(edited: ev.MessageEdited, response_ids: Iterable[str]) -> bool:
    """Return whether any of the responses was started after the latest edit of its question."""
    edit = MessageRevision.objects.filter(message_id=edited.message_id, number=edited.revision)
    later = ChatEvent.objects.filter(chat_id=edited.chat_id, seq__gt=edit.values("seq")[:1])
    begun = later.filter(type="response.created", response_id__in=list(response_ids))
    return begun.exists()


def replace_versions(chat_id: str, first_id: str, new_id: str) -> None:
    """Mark earlier versions as replaced by a new one; the caller holds the chat's lock."""
    place = Message.objects.filter(pk=new_id).values("seq")
    # A version that finishes at the same time may already be written, with a later place.
    former = versions_of(chat_id, first_id).filter(replaced_by__isnull=True, seq__lt=place)
    forget_mentions(*former.values_list("pk", flat=True))
    former.update(replaced_by=new_id)


def versions_of(chat_id: str, first_id: str) -> QuerySet[Message]:
    """Return all versions of an answer."""
    return Message.objects.filter(Q(pk=first_id) | Q(version_of=first_id), chat_id=chat_id)
