"""The plain values that the folders of this app exchange, read from rows once."""

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
    """The call by which an agent delegated: its row, and its response.

    `asked_in` is the chat in which a person or program asked for the work at first: approvals and
    payments are asked for there, and its rule chooses the payer.
    """

    pk: int
    response_id: str
    asked_in: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CallAnswer:
    """The result of a response for the agent that delegated it."""

    result: str
    is_error: bool
    content_items: Sequence[uamp.ContentItem] = ()


@dataclass(kw_only=True, slots=True)
class OpenSession:
    """An open session as a connection holds it (UAMP §8.8).

    `id` is the row's; `wire_id` is the one that its client knows, which may be the client's choice.
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
    # The token that its own answers are paid with.
    payment_token_id: str = ""
    # Why the token for its answers is not taken; sent when one of them has to be paid.
    payment_refused: ev.PaymentError | None = None
    # Where another agent asked: the call that waits for what this session's agent answers.
    parent: ParentCall | None = None
    wire_id: str = ""
    # Whether it and its private chat are deleted after a time in which its id is not named.
    ephemeral: bool = False

    def __post_init__(self) -> None:
        self.wire_id = self.wire_id or self.id

    @property
    def asked_in(self) -> str:
        """The chat of the first request: its own, unless an agent delegated."""
        return self.chat_id if self.parent is None else self.parent.asked_in

    @property
    def is_shared(self) -> bool:
        """Whether people meet in its chat, rather than one client and its agent."""
        return self.chat_kind == "group"
