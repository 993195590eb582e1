"""A stored response, for protocols whose clients come back to it by its id."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import uamp
from gateway_app.types.message_origins import MessageOrigin, question_of
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from gateway_app.types.follow_up import ClientFollowUp
    from uamp.events import Event

ResponseStanding: TypeAlias = Literal[
    "queued", "working", "asking", "completed", "cancelled", "failed", "rejected"
]
"""The client's view of a response: an unfinished one is queued, working or asking something."""

REJECTED: Final = frozenset({ErrorCode.REQUEST_REFUSED, ErrorCode.CONTENT_FILTERED})
"""The errors of a response that was refused, rather than one that failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SettledPayment:
    """A payment that a response demanded and received; `amount` is in the asset's smallest unit."""

    transaction: str
    network: str
    asset: str
    amount: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredResponse:
    """One response of the caller, in the current state of its rows.

    `thread` is the id under which its client continues the conversation, and `extension` the data
    that the protocol stores with the session. `status` is a `uamp.ResponseState`; only an
    unfinished response has `pending_questions`. `request` is the original request: its `messages`
    are the preceding conversation in its current wording, or None if the chat held it. `origins`
    mark the questions and answers of other responses in it. `follow_ups` are the messages with
    which its client answered the response, if they were loaded.
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
    pending_questions: tuple[Event, ...] = ()
    payments: tuple[SettledPayment, ...] = ()
    origins: tuple[MessageOrigin, ...] = ()
    # Completed answers only (UAMP §6.7).
    signature: str | None = None
    follow_ups: tuple[ClientFollowUp, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether the response is final."""
        return self.status in {"completed", "cancelled", "failed"}

    @property
    def conversation(self) -> tuple[uamp.Message, ...] | None:
        """The messages from which a client continues; None if the chat holds them."""
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
        """The places in `conversation` of all questions and answers, including this response's."""
        config = self.request.response
        place = len(config.messages or ()) if config else 0
        own_origins: list[MessageOrigin] = []
        for is_answer, items in ((False, self.question), (True, self.output)):
            if items:
                own_origins.append(MessageOrigin(place + len(own_origins), self.id, is_answer))
        return (*self.origins, *own_origins)

    def with_questions(self, questions: Sequence[Event]) -> StoredResponse:
        """Return a copy with these pending questions."""
        return replace(self, pending_questions=tuple(questions))

    @property
    def is_rejected(self) -> bool:
        """Whether the response failed because it was refused."""
        return self.error is not None and self.error.code in REJECTED


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponsePage:
    """A page of responses, most recently changed first; `next_cursor` is '' on the last page."""

    responses: tuple[StoredResponse, ...]
    total: int
    next_cursor: str


def own_extension(extensions: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the data that a protocol stores with a session, or {} if its client spoilt them.

    Clients can write the extensions of their sessions over UAMP.
    """
    extension = extensions.get(name)
    return extension if isinstance(extension, dict) else {}
