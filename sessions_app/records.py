"""Plain values, read from rows once, that the folders of this app exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import uamp
    from sessions_app.access.principal import Principal
    from uamp import events as ev


@dataclass(frozen=True, kw_only=True, slots=True)
class ParentCall:
    """The tool call by which an agent delegated: its row and its response.

    `asked_in` is the chat of the original request by a person or program. Approvals and payments
    are requested there, and its rule chooses the payer.
    """

    pk: int
    response_id: str
    asked_in: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CallAnswer:
    """A response's result, for the agent that delegated it."""

    result: str
    is_error: bool
    content_items: Sequence[uamp.ContentItem] = ()
    cause: str = ""


@dataclass(kw_only=True, slots=True)
class OpenSession:
    """An open session as a connection holds it (UAMP §8.8).

    `id` is the row's; `wire_id` is the one that the client knows, and may have been chosen by it.
    """

    id: str
    principal: Principal
    chat_id: str
    chat_kind: str
    chat_scoped: bool
    epoch: str
    last_seq: int
    opened_seq: int
    agent_id: str | None
    agent_name: str | None
    config: uamp.SessionConfig
    created_at: datetime
    transport: str
    client_capabilities: uamp.Capabilities | None = None
    # The token that pays for this session's own answers.
    payment_token_id: str = ""
    # Why the payment token was refused; sent once an answer has to be paid.
    payment_refused: ev.PaymentError | None = None
    # Set if another agent delegated: the call that waits for this session's answer.
    parent: ParentCall | None = None
    wire_id: str = ""
    # The server that owns the log of its chat, if it is not this one.
    home: str | None = None
    # Whether it and its private chat are deleted if its id is not used for a while.
    ephemeral: bool = False

    def __post_init__(self) -> None:
        self.wire_id = self.wire_id or self.id

    @property
    def asked_in(self) -> str:
        """The chat of the original request: the session's own unless an agent delegated."""
        return self.chat_id if self.parent is None else self.parent.asked_in

    @property
    def is_shared(self) -> bool:
        """Whether the chat is shared by people, rather than private to a client and its agent."""
        return self.chat_kind == "group"
