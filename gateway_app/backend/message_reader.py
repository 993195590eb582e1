"""A chat message for the chat's members, with the answer that it is or that it received.

Membership is checked here. A message that the reader may not see is not found.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

import uamp
from chat_app.log import history
from chat_app.members import membership
from gateway_app.backend.agents.agent_directory import reader_of
from gateway_app.backend.content_links import content_link
from gateway_app.backend.responses import stored_of
from gateway_app.types.protocol_presentation import (
    ExampleQuestion,
    FinishedAnswer,
    PresentedMessage,
)
from sessions_app import database
from sessions_app.returning import past_responses
from sessions_app.transports.http_exchange import count_events
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

    from chat_app.log.history import LoggedEvent, LoggedMessage
    from gateway_app.types.stored_response import StoredResponse
    from sessions_app.returning.past_responses import PastResponse
    from uamp.events import Event

TEXT_PIECE: Final = 1_000
"""The code points of an answer in one delta."""

_Read = tuple["LoggedMessage", "PastResponse | None", "LoggedEvent | None"]


async def message_for(request: HttpRequest, message_id: str) -> PresentedMessage:
    """Return a message of a chat that the caller is a member of.

    Raises RemoteProtocolError, the same for a message of another chat as for an unknown one.
    """
    principal = await reader_of(request, protocol="rest", scope="chats:read")
    await count_events(request, principal, kind="reads")
    rows = await database.run(partial(_read, message_id, principal.user_id))
    if rows is None or not principal.rights.sees_chat(rows[0].chat_id):
        raise RemoteProtocolError(
            ErrorCode.CHAT_NOT_FOUND, "There is no such message, or you are not in its chat."
        )
    return _presented(request, principal.user_id, *rows)


def _read(message_id: str, user_id: int | None) -> _Read | None:
    entry = history.message_entry(message_id)
    if entry is None or not membership.is_member(entry.chat_id, user_id):
        return None
    response = past_responses.response_about(message_id, entry.response_id)
    if response is None:
        return entry, None, None
    ends = history.ends_of_responses(entry.chat_id, [response.id])
    return entry, response, ends[0] if ends else None


def _presented(
    request: HttpRequest,
    user_id: int | None,
    entry: LoggedMessage,
    response: PastResponse | None,
    end: LoggedEvent | None,
) -> PresentedMessage:
    event = _event(entry.event)
    if response is None:
        return PresentedMessage(event=event, question=None, answer=None)
    base = request.build_absolute_uri(f"/agents/{quote(response.agent)}")
    question = ExampleQuestion(
        base=base,
        text=uamp.text_of(response.message),
        chat_id=entry.chat_id if entry.is_shared else "",
    )
    answer = None
    if entry.response_id and end is not None:
        # Payments and session ids belong to the person who asked, not to other members.
        stored = replace(stored_of(response), thread=entry.chat_id, payments=())
        answer = FinishedAnswer(
            stored=stored,
            events=tuple(_events(stored, event, _event(end))),
            link=partial(
                content_link,
                base_url=request.build_absolute_uri("/"),
                user_id=user_id,
                chat_id=entry.chat_id,
            ),
        )
    return PresentedMessage(
        event=event, question=question if question.text else None, answer=answer
    )


def _events(stored: StoredResponse, announced: ev.MessageCreated, end: Event) -> Iterator[Event]:
    """Yield the events of a finished response in the order in which they were sent."""
    yield ev.ResponseCreated(
        response_id=stored.id,
        agent=stored.agent,
        message_id=stored.question_id or None,
        chat_id=stored.chat_id,
        transport=announced.message.transport,
    )
    for event in uamp.events_of_output(stored.id, stored.output):
        yield from _pieces(stored.id, event)
    yield end


def _pieces(response_id: str, event: Event) -> Iterator[Event]:
    """Split a text delta into pieces; yield any other event unchanged."""
    match event:
        case ev.ResponseDelta(delta=ev.Delta(type="text") as delta, offset=offset):
            text = delta.text or ""
            for at in range(0, len(text), TEXT_PIECE):
                piece = text[at : at + TEXT_PIECE]
                yield ev.text_delta(response_id, piece, (offset or 0) + at)
        case _:
            yield event


def _event(logged: LoggedEvent) -> Any:
    """Decode a log entry into the event that was sent."""
    return msgspec.convert({**logged.payload, "seq": logged.seq}, ev.ServerEvent)
