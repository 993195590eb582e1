"""Forks of chats, and what is written in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chat_app.forks import forking
from chat_app.models import Chat, Message
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from agents_app.models import Agent


def fork(message: Message, by: User, **options: Any) -> Chat:
    """Fork the chat of a message from it, and return the new chat."""
    event = forking.fork_chat(
        chat_id=message.chat_id,
        message_id=message.pk,
        forked_by=by,
        **{"admit": lambda _size: None, **options},
    )
    return Chat.objects.get(pk=event.chat_id)


def texts(chat: Chat) -> list[str]:
    return list(Message.objects.filter(chat=chat).order_by("seq").values_list("content", flat=True))


def answer(chat: Chat, agent: Agent, text: str, first: Message | None = None) -> Message:
    """Return an answer, or a later version of one."""
    message = factories.message(chat, agent, text, version_of=first.pk if first else None)
    if first is not None:
        former = Message.objects.filter(chat=chat, replaced_by__isnull=True).exclude(pk=message.pk)
        former.filter(pk=first.pk).update(replaced_by=message.pk)
        former.filter(version_of=first.pk).update(replaced_by=message.pk)
    return message
