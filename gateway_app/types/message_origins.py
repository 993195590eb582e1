"""The current text of the questions and answers copied into a stored conversation.

A response stores the conversation that preceded it (ADR 25). Messages deleted since are left out of
that copy, together with the results of their calls; edited ones show their present text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

import uamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class MessageOrigin(NamedTuple):
    """Marks the message at a place of a conversation as the question or answer of a response."""

    place: int
    response_id: str
    is_answer: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class CurrentTexts:
    """A response's current texts; `question` is empty if it was deleted."""

    question: tuple[uamp.ContentItem, ...]
    is_edited: bool
    has_answer: bool


def origins_from(stored: Any) -> tuple[MessageOrigin, ...]:
    """Parse the origins that an extension of a session stores; none if a client spoilt them."""
    try:
        return msgspec.convert(stored or (), tuple[MessageOrigin, ...])
    except msgspec.ValidationError:
        return ()


def current_conversation(
    messages: Sequence[uamp.Message],
    origins: Sequence[MessageOrigin],
    texts: Mapping[str, CurrentTexts],
) -> tuple[tuple[uamp.Message, ...], tuple[MessageOrigin, ...]]:
    """Return a conversation with its present messages, and their places in it."""
    origin_at = {origin.place: origin for origin in origins}
    current_messages: list[uamp.Message] = []
    places: list[MessageOrigin] = []
    withdrawn: set[str] = set()
    for place, message in enumerate(messages):
        origin = origin_at.get(place)
        now = texts.get(origin.response_id) if origin else None
        if origin and now and not (now.has_answer if origin.is_answer else now.question):
            withdrawn |= calls_of(message)
            continue
        if message.role == "tool" and message.tool_call_id in withdrawn:
            continue
        withdrawn -= calls_of(message)
        if origin:
            places.append(origin._replace(place=len(current_messages)))
        is_edited = origin and not origin.is_answer and now and now.is_edited
        current_messages.append(question_of(now.question) if now and is_edited else message)
    return tuple(current_messages), tuple(places)


def question_of(items: tuple[uamp.ContentItem, ...]) -> uamp.Message:
    """Convert a question to a user message."""
    return uamp.Message(role="user", content=uamp.text_of(items), content_items=items)


def calls_of(message: uamp.Message) -> set[str]:
    """Return the ids of the calls that a message contains."""
    items = message.content_items or ()
    return {
        *(call.id for call in message.tool_calls or ()),
        *(item.tool_call.id for item in items if isinstance(item, uamp.ToolCallContent)),
    }
