"""A turn as requested by a transport, its outcome, and the check of its size."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from django.conf import settings

import uamp
from chat_app.log.entries import NewMessage
from chat_app.members.agents.agent_mentions import DISABLED, PRIVATE, MentionStop
from chat_app.members.membership import AgentMember
from sessions_app.records import OpenSession
from sessions_app.response.run import Run
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.types.inline_media import is_data_url

if TYPE_CHECKING:
    from agents_app.selectors import AgentSpec
    from payments_app.money import Money
    from sessions_app.billing.payers import Source

    Pay: TypeAlias = Callable[[OpenSession, AgentSpec, Money], Awaitable[Source]]


# The codes of refusals in which all agents have the same reason; agent_not_found for the others.
_CODES: Final = {DISABLED: ErrorCode.AGENT_DISABLED, PRIVATE: ErrorCode.FORBIDDEN}


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as requested by a transport. `sha256` is the digest of the whole client event."""

    session: OpenSession
    event_id: str
    sha256: str
    inputs: Sequence[ev.InputEvent]
    create: ev.ResponseCreate
    pending_input_ids: Sequence[int] = ()
    origin: str = ""
    # Validated items, appended to the message's own.
    attachments: Sequence[uamp.ContentItem] = ()
    # Called before anything is written, for each answer that is not paid yet. Returns the source
    # that pays, or refuses the turn. With None, the payer is asked while the answer waits.
    pay: Pay | None = None
    # Called with the number of answers before files are stored, and with the size of the text in
    # bytes before the turn is written. Counts them against limits, or refuses the turn.
    admit: Callable[[int, int], Awaitable[None]] | None = None
    # The name that limits count the asker under, if not the session's own.
    counted_as: str = ""
    # The agents asked by another agent's answer, and the number of such hops so far.
    asked: Sequence[AgentMember] = ()
    hops: int = 0
    # The answer that asks them.
    mentioned_in: NewMessage | None = None
    # The root of the thread in which they are asked.
    thread: str | None = None
    # Whether the answer that asks them, or delegates this work, is unprompted itself.
    unprompted: bool = False

    @property
    def person(self) -> str:
        """The name that limits count the asker under."""
        return self.counted_as or self.session.principal.counted_as


class StartedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a turn; for a repeated event, the original outcome.

    `queued`: the message is sent once the running answers in its chat have ended. `stopped` lists
    agents that do not answer, with the reasons.
    """

    response_ids: Sequence[str]
    runs: Sequence[Run] = ()
    repeated: bool = False
    queued: bool = False
    stopped: Sequence[MentionStop] = ()

    @property
    def refusal(self) -> RemoteProtocolError | None:
        """The reason that agents do not answer; None if all do. The message is kept either way."""
        if not self.stopped:
            return None
        reasons = {stop.reason for stop in self.stopped}
        code = _CODES.get(reasons.pop()) if len(reasons) == 1 else None
        return RemoteProtocolError(
            code or ErrorCode.AGENT_NOT_FOUND, " ".join(stop.words for stop in self.stopped)
        )


def check_size(inputs: Sequence[ev.InputEvent], message: uamp.Message | None) -> int:
    """Return the size of a turn's text in bytes: its message, and inputs in other roles.

    Media do not count, nor does a history: it arrives in one event, whose size is limited
    separately. Raises RemoteProtocolError event_too_large.
    """
    size = sum(
        len(input_event.text.encode())
        for input_event in inputs
        if isinstance(input_event, ev.InputText) and input_event.role != "user"
    )
    if message is not None:
        items = sum(_text_bytes(item) for item in message.content_items or ())
        size += max(items, len((message.content or "").encode()))
    if size > settings.UAMP_MESSAGE_BYTES:
        raise RemoteProtocolError(
            ErrorCode.EVENT_TOO_LARGE,
            f"The text of one turn may have at most {settings.UAMP_MESSAGE_BYTES} bytes, and this"
            f" has {size}. Its inputs were dropped: send less of them, or the text as a file.",
        )
    return size


def _text_bytes(item: uamp.ContentItem) -> int:
    """Return the bytes that an item occupies in its message's row once its medium is stored."""
    if isinstance(item, uamp.TextContent):
        return len(item.text.encode())
    medium = uamp.media_of(item)
    is_inline = isinstance(medium, str) or (medium is not None and is_data_url(medium.url))
    fields = [getattr(item, name) for name in item.__struct_fields__]
    return len(
        msgspec.json.encode([part for part in fields if part is not medium or not is_inline])
    )
