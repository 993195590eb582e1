"""A session attached to a connection: its subscription and its client's inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from sessions_app.connection.chat_subscription import ChatSubscription
    from sessions_app.inputs.pending import PendingInputs
    from sessions_app.records import OpenSession


ASKED_HERE: Final = 64


@dataclass(kw_only=True, slots=True)
class AttachedSession:
    """A session attached to this connection.

    Changed by the task that handles the client's events; `auto_respond` runs on the same loop.
    """

    session: OpenSession
    subscription: ChatSubscription
    inputs: PendingInputs
    pending_input_ids: list[int] = field(default_factory=list)
    auto_respond: asyncio.TimerHandle | None = None
    # Responses started without a response.create, in case one still arrives.
    auto_started: tuple[str, ...] = ()
    # The last responses to requests of this connection.
    asked_here: tuple[str, ...] = ()
    # When the chat was last sent that its client is typing, in seconds of the monotonic clock.
    typed_at: float = 0.0
    # The last relayed sign; None if there was none since the last message.
    is_typing: bool | None = None

    def note_asked(self, response_ids: Sequence[str]) -> None:
        """Record the responses to a request of this connection."""
        self.asked_here = (*self.asked_here, *response_ids)[-ASKED_HERE:]

    def is_withheld(self, response_id: str = "") -> bool:
        """Return whether to send nothing of the chat, because the session's token has expired.

        The answers that it follows here are sent until they end. The rest is sent with the next
        token (`session.update`), from the log.
        """
        return self.session.principal.is_expired and response_id not in self.subscription.runs
