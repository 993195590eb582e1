"""Reads of the caller's own responses, for protocols whose clients come back to them.

Each read is limited to one caller and one agent; the responses of other callers are not found.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

import msgspec
from django.core import signing

from chat_app.log import history as chat_history
from gateway_app.backend.content_links import content_link
from gateway_app.backend.conversations import Conversations
from gateway_app.backend.current_texts import current_texts
from gateway_app.backend.demands import charged_details, charged_failure
from gateway_app.types.follow_up import ClientFollowUp, FollowUpPart, MediumReference
from gateway_app.types.message_origins import current_conversation, origins_from
from gateway_app.types.stored_response import (
    REJECTED,
    ResponsePage,
    SettledPayment,
    StoredResponse,
    own_extension,
)
from payments_app import x402
from payments_app.money import Money
from payments_app.tokens.lookup import X402_NETWORK
from sessions_app import database, selectors
from sessions_app.access import rates
from sessions_app.access.protocol_rights import check_reads_all
from sessions_app.billing.demands import demands_below
from sessions_app.connection.rate_limit import RateLimited
from sessions_app.handlers.sessions import find_session, waiting_frames
from sessions_app.response import follow_ups
from sessions_app.response.follow_ups import FollowUpMessage
from sessions_app.returning import past_responses
from sessions_app.returning.past_responses import PastResponse, ResponseFilter
from sessions_app.transports.http_exchange import count_events, principal_of
from uamp import ErrorCode, RemoteProtocolError, ResponseState
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping, Sequence

    from django.http import HttpRequest

    from gateway_app.backend.exchange import Exchange
    from gateway_app.types.stored_response import ResponseStanding
    from sessions_app.access.principal import Principal
    from sessions_app.records import OpenSession
    from uamp.events import Event

CANCEL_TRIES: Final = 40
CANCEL_SECONDS: Final = 0.25
_EVENTS: Final[msgspec.json.Decoder[ev.ServerEvent]] = msgspec.json.Decoder(ev.ServerEvent)
_SALT: Final = "gateway_app.doors.responses"
_LIVE: Final = (ResponseState.IN_PROGRESS.value, ResponseState.WAITING.value)
_FAILED: Final = (ResponseState.FAILED.value,)
_CODES: Final = tuple(sorted(REJECTED))
_FILTERS: Final[dict[ResponseStanding, ResponseFilter]] = {
    "queued": ResponseFilter(states=(ResponseState.QUEUED.value,)),
    "working": ResponseFilter(states=_LIVE, asks=False),
    "asking": ResponseFilter(states=_LIVE, asks=True),
    "completed": ResponseFilter(states=(ResponseState.COMPLETED.value,)),
    "cancelled": ResponseFilter(states=(ResponseState.CANCELLED.value,)),
    "failed": ResponseFilter(states=_FAILED, error_codes=_CODES, without_codes=True),
    "rejected": ResponseFilter(states=_FAILED, error_codes=_CODES),
}


class ResponseReader:
    """The responses that one caller got over one protocol, from one agent or from all.

    `extension` names the session extension in which the protocol stores, as `contextId`, the thread
    id that its client chose. `address` is the request's URL as the client addressed it. Over HTTP,
    `scope` is the request's (ASGI). Used by one task only.
    """

    def __init__(
        self,
        address: str,
        principal: Principal,
        *,
        transport: str,
        agent: str,
        extension: str,
        scope: MutableMapping[str, Any] | None = None,
    ) -> None:
        self._address, self._scope = address, scope
        self._principal = principal
        self._transport, self._agent, self._extension = transport, agent, extension

    @classmethod
    async def of(
        cls, request: HttpRequest, *, transport: str, agent: str, extension: str
    ) -> ResponseReader:
        """Authenticate the caller, apply the rate limits and return the reader of a request.

        Raises RemoteProtocolError.
        """
        principal = await principal_of(request, protocol=transport, scope="chats:read")
        check_reads_all(principal)
        await count_events(request, principal)
        address = request.build_absolute_uri()
        return cls(address, principal, transport=transport, agent=agent, extension=extension)

    @property
    def principal(self) -> Principal:
        """The caller."""
        return self._principal

    @property
    def is_visitor(self) -> bool:
        """Whether the caller has no identity."""
        return self._principal.is_visitor

    @property
    def conversations(self) -> Conversations:
        """The caller's chats."""
        return Conversations(self._principal, self._address)

    async def count_reads(self, responses: int) -> None:
        """Count the further responses that a request reads as events.

        Raises RemoteProtocolError rate_limited.
        """
        quota = await rates.limiter().take("events", self._principal.counted_as, cost=responses)
        if self._scope is not None:
            rates.note(self._scope, quota)
        if not quota.allowed:
            raise RateLimited(quota)

    async def find(self, response_id: str) -> StoredResponse | None:
        """Return a response in its current state; None if the caller has no such response."""
        read = partial(
            past_responses.find_response,
            response_id,
            self._principal,
            transport=self._transport,
            agent=self._agent,
        )
        row = await database.run(read)
        if row is None:
            return None
        stored = await self._stored(row)
        if stored.error is None:
            return stored
        details = {**(stored.error.details or {}), **await charged_details(row.id)}
        return replace(stored, error=msgspec.structs.replace(stored.error, details=details))

    async def is_asking(self, response_id: str) -> bool:
        """Return whether a response of the caller waits for input, without reading its texts."""
        read = partial(
            past_responses.is_asking,
            response_id,
            self._principal,
            transport=self._transport,
            agent=self._agent,
        )
        return await database.run(read)

    async def end_of(self, stored: StoredResponse) -> Event | None:
        """Return the event that ended a response; None if it has not ended."""
        read = partial(chat_history.ends_of_responses, stored.chat_id, [stored.id])
        ends = await database.run(read)
        if not ends:
            return None
        end: Event = msgspec.convert(ends[0].payload, ev.ServerEvent)
        return await charged_failure(end, stored.id)

    async def cancel(self, exchange: Exchange, response_id: str) -> StoredResponse | None:
        """Cancel a running response, in whichever process it runs, and return its new state.

        Raises RemoteProtocolError if it is no longer running.
        """
        await exchange.join(response_id)
        await exchange.send(ev.ResponseCancel(response_id=response_id))
        for _ in range(CANCEL_TRIES):
            stored = await self.find(response_id)
            if stored is None or stored.has_ended:
                break
            # Its own process, which may be a different one, ends it.
            await asyncio.sleep(CANCEL_SECONDS)
        return stored

    async def add_follow_up(self, response_id: str, follow_up: ClientFollowUp) -> None:
        """Store a message in which the caller answered a response."""
        parts = [_kept_part(part) for part in follow_up.parts]
        message = FollowUpMessage(follow_up.message_id, parts)
        await database.run(follow_ups.add_follow_up, response_id, message)

    async def with_follow_ups(self, responses: Sequence[StoredResponse]) -> list[StoredResponse]:
        """Return the caller's responses together with the messages that answered them."""
        ids = [stored.id for stored in responses]
        messages = await database.run(follow_ups.follow_ups_of, ids)
        return [
            replace(stored, follow_ups=tuple(map(_follow_up, messages.get(stored.id, ()))))
            for stored in responses
        ]

    async def session_named(self, session_id: str) -> str | None:
        """Return the id of the caller's open session with the agent; None for any other session."""
        session = await find_session(session_id, self._principal)
        if session is None or session.transport != self._transport:
            return None
        if session.agent_name is None or session.agent_name.lower() != self._agent.lower():
            return None
        return session.wire_id

    async def page(
        self,
        *,
        thread: str = "",
        standing: ResponseStanding | None = None,
        changed_after: datetime | None = None,
        limit: int,
        cursor: str = "",
    ) -> ResponsePage:
        """Return a page of the caller's responses, most recently changed first.

        A visitor must name a thread to see any. Raises RemoteProtocolError for a cursor of another
        list.
        """
        caller = "" if self.is_visitor else self._principal.key
        listed = [caller, self._agent, thread, standing or "", str(changed_after)]
        which = replace(
            ResponseFilter() if standing is None else _FILTERS[standing],
            session_id=thread,
            extension=(self._extension, "contextId", thread),
            changed_after=changed_after,
        )
        read = partial(
            past_responses.list_responses,
            self._principal,
            which,
            transport=self._transport,
            agent=self._agent,
            limit=limit + 1,
            before=_read_cursor(cursor, listed) if cursor else None,
        )
        rows, total = await database.run(read)
        stored = [await self._stored(row) for row in rows[:limit]]
        following = ""
        if len(rows) > limit:
            last = rows[limit - 1]
            place = [*listed, last.changed_at.isoformat(), last.id]
            following = signing.dumps(place, salt=_SALT)
        return ResponsePage(responses=tuple(stored), total=total, next_cursor=following)

    def link_in(self, chat_id: str) -> Callable[[str], str]:
        """Return a function that gives temporary addresses to the media of a chat."""
        return partial(
            content_link,
            base_url=urljoin(self._address, "/"),
            user_id=self._principal.user_id,
            chat_id=chat_id,
        )

    # --- Pending questions ---

    async def _stored(self, row: PastResponse) -> StoredResponse:
        stored = await self._with_conversation(stored_of(row, extension=self._extension))
        return stored if stored.has_ended else stored.with_questions(await self._questions(row))

    async def _with_conversation(self, stored: StoredResponse) -> StoredResponse:
        """Return a response with its preceding conversation in its current wording."""
        config, origins = stored.request.response, origins_from(stored.extension.get("origins"))
        if not origins or config is None or config.messages is None:
            return stored
        responses = [origin.response_id for origin in origins]
        texts = await current_texts(responses, self._principal)
        messages, places = current_conversation(config.messages, origins, texts)
        request = msgspec.structs.replace(
            stored.request, response=msgspec.structs.replace(config, messages=messages)
        )
        return replace(stored, request=request, origins=places)

    async def _questions(self, row: PastResponse) -> list[Event]:
        session = await database.run(self._session_of, row)
        if session is None:
            return []
        events = [_EVENTS.decode(text) for text in await waiting_frames(session)]
        questions: list[Event] = [
            event for event in events if getattr(event, "response_id", None) == row.id
        ]
        if not questions:
            questions += await database.run(demands_below, session, row.id)
        return [
            self._demand(event, row) if isinstance(event, ev.PaymentRequired) else event
            for event in questions
        ]

    def _session_of(self, row: PastResponse) -> OpenSession | None:
        """Return the session of a response; reading does not extend an ephemeral session's life."""
        principal = self._principal
        if principal.is_visitor:
            key = selectors.anonymous_session_principal(row.session_id)
            if key is None:
                return None
            principal = replace(principal, key=key)
        return selectors.find_session(row.session_id, principal)

    def _demand(self, event: ev.PaymentRequired, row: PastResponse) -> ev.PaymentRequired:
        """Add to a demand, as `extra.x402`, the x402 offers that a token can meet.

        Delegated work is paid to the agent that does it.
        """
        needed = event.requirements
        response_id = event.response_id or row.id
        agent, about = row.agent, row.agent_description
        if response_id != row.id:
            agent, about = str((needed.extra or {}).get("agent", "")), ""
        body = x402.requirements(
            Money.parse(needed.amount, needed.currency),
            resource_url=self._address,
            description=about or f"An answer of {agent}",
            agent=agent,
            response_id=response_id,
        )
        accepts = [offer for offer in body["accepts"] if offer["scheme"] == "token"]
        offers = {"x402Version": body["x402Version"], "accepts": accepts}
        needed = msgspec.structs.replace(needed, extra={**(needed.extra or {}), "x402": offers})
        return msgspec.structs.replace(event, requirements=needed)


async def is_visitor(request: HttpRequest) -> bool:
    """Return whether the caller of an A2A request has no identity.

    Raises RemoteProtocolError.
    """
    return (await principal_of(request, protocol="a2a", scope="agents:read")).is_visitor


def stored_of(row: PastResponse, *, extension: str = "") -> StoredResponse:
    """Build a response from its rows, without its pending questions."""
    extension_data = own_extension(row.extensions, extension)
    thread = extension_data.get("contextId")
    return StoredResponse(
        id=row.id,
        thread=thread if thread and isinstance(thread, str) else row.session_id,
        agent=row.agent,
        chat_id=row.chat_id,
        extension=extension_data,
        status=row.status,
        request=row.request,
        output=row.output,
        error=row.error,
        question_id=row.message_id,
        question=row.message,
        created_at=row.created_at,
        changed_at=row.changed_at,
        signature=row.signature,
        payments=tuple(
            SettledPayment(
                transaction=payment.hold_id,
                network=X402_NETWORK,
                asset=payment.asset,
                amount=payment.amount,
            )
            for payment in row.paid
        ),
    )


def _kept_part(part: FollowUpPart) -> dict[str, Any]:
    if part.text is not None:
        return {"text": part.text}
    if isinstance(part.medium, MediumReference):
        return {"medium": part.medium.number, "call_id": part.medium.call_id}
    return {"data": part.data}


def _follow_up(message: FollowUpMessage) -> ClientFollowUp:
    parts = tuple(FollowUpPart(**part) for part in message.parts)
    return ClientFollowUp(message_id=message.message_id, parts=parts)


def _read_cursor(cursor: str, listed: Sequence[str]) -> tuple[datetime, str]:
    try:
        *named, at, pk = signing.loads(cursor, salt=_SALT)
    except (signing.BadSignature, ValueError):
        named, at, pk = [], "", ""
    if named != list(listed):
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            "The page token does not belong to this list. Start again without one.",
        )
    return datetime.fromisoformat(at), pk
