"""A response as it is kept, for protocols whose clients come back to it by its id."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import uamp
from gateway_app.shapes.message_origins import MessageOrigin, question_of
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from gateway_app.shapes.follow_up import ClientFollowUp
    from uamp.events import Event

ResponseStanding: TypeAlias = Literal[
    "queued", "working", "asking", "completed", "cancelled", "failed", "rejected"
]
"""Where a response is, for its client: an unfinished one asks for something, or is at work."""

REJECTED: Final = frozenset({ErrorCode.REQUEST_REFUSED, ErrorCode.CONTENT_FILTERED})
"""Errors of a response that was refused rather than broken."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SettledPayment:
    """A payment that a response asked for and got; `amount` is in the asset's smallest unit."""

    transaction: str
    network: str
    asset: str
    amount: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredResponse:
    """One response of the caller, as its rows have it now.

    `thread` is the id under which its client goes on with the conversation, `extension` what the
    protocol keeps with the session. `status` is a `uamp.ResponseState`; `asked` has what an
    unfinished response asks its client for. `request` is what was asked for; its `messages` are
    the conversation before the question as it is now, None where that was the chat's own;
    `origins` are the places in it of what other responses asked and answered. `follow_ups` are the
    messages with which its client answered it, where they were read.
    """

    id: str
    thread: str
    agent: str
    chat_id: str
    extension: Mapping[str, Any]
    status: str
    request: uamp.ResponseCreate
    output: tuple[uamp.ContentItem, ...]
    error: uamp.ErrorDetail | None
    question_id: str
    question: tuple[uamp.ContentItem, ...]
    created_at: datetime
    changed_at: datetime
    asked: tuple[Event, ...] = ()
    payments: tuple[SettledPayment, ...] = ()
    origins: tuple[MessageOrigin, ...] = ()
    # Of a completed answer (UAMP §6.7).
    signature: str | None = None
    follow_ups: tuple[ClientFollowUp, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it changes any more."""
        return self.status in {"completed", "cancelled", "failed"}

    @property
    def conversation(self) -> tuple[uamp.Message, ...] | None:
        """The messages with which a client goes on after it; None where the chat has them."""
        config = self.request.response
        if config is None or config.messages is None:
            return None
        question = question_of(self.question)
        answer = uamp.Message(
            role="assistant", content=uamp.text_of(self.output), content_items=self.output
        )
        return (
            *config.messages,
            *((question,) if self.question else ()),
            *((answer,) if self.output else ()),
        )

    @property
    def conversation_origins(self) -> tuple[MessageOrigin, ...]:
        """Where `conversation` has what this response and those before it asked and answered."""
        config = self.request.response
        place = len(config.messages or ()) if config else 0
        own: list[MessageOrigin] = []
        for is_answer, items in ((False, self.question), (True, self.output)):
            if items:
                own.append(MessageOrigin(place + len(own), self.id, is_answer))
        return (*self.origins, *own)

    def asking(self, asked: Sequence[Event]) -> StoredResponse:
        """Return it with what it asks its client for."""
        return replace(self, asked=tuple(asked))

    @property
    def is_rejected(self) -> bool:
        """Whether it failed because it was refused."""
        return self.error is not None and self.error.code in REJECTED


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponsePage:
    """A page of responses, the last changed first; `next_cursor` is '' on the last page."""

    responses: tuple[StoredResponse, ...]
    total: int
    next_cursor: str
