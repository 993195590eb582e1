"""REST requests as a UAMP client: the caller's session, and the events sent in it.

Over REST, a person has one session per chat and agent, with an id derived from these. The events of
a request with an `Idempotency-Key` derive their ids from the key: repeating the request returns the
original outcome, and another body under the same key is refused.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from asgiref.sync import async_to_sync
from rest_framework.serializers import ValidationError

from agents_app.rest.problem_kinds import PROBLEMS, ProblemKind
from agents_app.rest.problems import Problem
from agents_app.rest.views import caller
from chat_app.contents.quota import ContentOwner
from sessions_app import selectors
from sessions_app.access import auth
from sessions_app.access.principal import Principal
from sessions_app.connection.open_sessions import attached_session, opened_session
from sessions_app.handlers.sessions import find_session
from sessions_app.models import SessionTransport
from sessions_app.transports.http_exchange import HttpExchange, retry_after
from uamp import ErrorCode, RemoteProtocolError
from uamp.errors.http_status import http_status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rest_framework.request import Request

    from sessions_app.records import OpenSession

HEADER: Final = "Idempotency-Key"
KEY_CHARS: Final = 128
TRANSPORT: Final = SessionTransport.REST.value
_NAMESPACE: Final = uuid.UUID("b1c7a3f2-52a4-4f0e-9f0c-6a0a8a5d9d10")
# Errors with a REST code; all others keep the protocol's code.
_CODES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_SESSION: "not_found",
    ErrorCode.CHAT_NOT_FOUND: "not_found",
    ErrorCode.UNKNOWN_CALL: "not_found",
    ErrorCode.FORBIDDEN: "forbidden",
    ErrorCode.EVENT_TOO_LARGE: "content_too_large",
    ErrorCode.RATE_LIMITED: "rate_limit_exceeded",
    ErrorCode.BUSY: "unavailable",
    ErrorCode.UNAVAILABLE: "unavailable",
    ErrorCode.INTERNAL_ERROR: "internal_error",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestKey:
    """The identity of a repeatable request: its event id and its digest.

    `is_given` is False for requests without a key, which get a new id each time.
    """

    event_id: str
    sha256: str = ""
    is_given: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestOutcome:
    """The outcome of a request's events.

    `message_id` and `response_ids` are those of the turn. `repeated` is True if an earlier request
    with the same key had started it. `unanswered` is the reason if agents that should have answered
    do not.
    """

    message_id: str | None
    response_ids: Sequence[str]
    repeated: bool
    unanswered: RemoteProtocolError | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RestSession:
    """The session of a request: one for a chat and agent, or a new private one.

    `name` is the session's id on the wire; the server chooses one if it is empty.
    """

    chat_id: str | None = None
    agent: str | None = None
    name: str = ""
    extensions: Mapping[str, Any] = field(default_factory=dict)

    def create(self) -> dict[str, Any]:
        """Return the event that opens the session."""
        named = {"id": self.name} if self.name else {}
        event: dict[str, Any] = {
            "type": "session.create",
            "uamp_version": "1.0",
            "session": {"modalities": ["text"], **named},
        }
        if self.chat_id is not None:
            event["chat"] = self.chat_id
        if self.agent is not None:
            event["agent"] = self.agent
        return event


def session_in(chat_id: str, agent: str | None = None) -> RestSession:
    """Return the caller's session for a chat in which `agent`, if given, answers each turn."""
    digest = hashlib.sha256(msgspec.json.encode((agent or "", chat_id))).hexdigest()
    return RestSession(chat_id=chat_id, agent=agent, name=f"{TRANSPORT}-{digest[:40]}")


def key_of(request: Request) -> RequestKey:
    """Return the identity of a request; raises ValidationError if its key is too long."""
    key = request.headers.get(HEADER)
    if key is None:
        return RequestKey(event_id=uuid.uuid4().hex)
    if not 0 < len(key) <= KEY_CHARS:
        raise ValidationError({HEADER: f"This header has 1 to {KEY_CHARS} characters."})
    data = request.data
    if isinstance(data, dict):
        # How long the client waits is not part of the request: retries often change it.
        data = {name: value for name, value in data.items() if name != "wait"}
    # The order of members does not matter.
    body = json.dumps(data, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"{request.path}\n{body}".encode()).hexdigest()
    event_id = str(uuid.uuid5(_NAMESPACE, key))
    return RequestKey(event_id=event_id, sha256=digest, is_given=True)


def principal_of(request: Request) -> Principal:
    """Return the principal of a request admitted by the view."""
    principal = request.auth
    if isinstance(principal, Principal):
        return principal
    return auth.of_user(caller(request), web_session=request.session.session_key or "")


def sender_of(request: Request) -> ContentOwner:
    """Return the sender whose files a request may attach: those that its credential may read."""
    principal = principal_of(request)
    return ContentOwner(user_id=principal.user_id, chats=principal.rights.chats)


def send(
    request: Request,
    session: RestSession,
    events: Sequence[Mapping[str, Any]],
    *,
    key: RequestKey | None = None,
) -> RequestOutcome:
    """Send events in a session, like a client on a socket; return their outcome.

    The last event gets the id of `key`. Raises Problem on the first refusal; earlier events stay in
    effect.
    """
    principal = principal_of(request)
    row_id, repeated, unanswered = async_to_sync(_send)(request, principal, session, events, key)
    return outcome_of(row_id, key, repeated=repeated, unanswered=unanswered)


def outcome_of(
    row_id: str,
    key: RequestKey | None,
    *,
    repeated: bool,
    unanswered: RemoteProtocolError | None,
) -> RequestOutcome:
    """Return the outcome of a request that was sent in the session of a row."""
    outcome = None if key is None else selectors.outcome_of(row_id, key.event_id)
    return RequestOutcome(
        message_id=None if outcome is None else outcome.message_id,
        response_ids=() if outcome is None else outcome.response_ids,
        repeated=repeated,
        unanswered=unanswered,
    )


async def _send(
    request: Request,
    principal: Principal,
    session: RestSession,
    events: Sequence[Mapping[str, Any]],
    key: RequestKey | None,
) -> tuple[str, bool, RemoteProtocolError | None]:
    # The reply is made from rows, by `sent_response`: a key that may write alone may send.
    exchange, session_id = await open_exchange(
        request, principal, session, events, key, receives=False
    )
    await exchange.close()
    connection = exchange.connection
    return session_id, connection.has_repeated, connection.unanswered


async def open_exchange(
    request: Request,
    principal: Principal,
    session: RestSession,
    events: Sequence[Mapping[str, Any]],
    key: RequestKey | None,
    *,
    receives: bool,
) -> tuple[HttpExchange, str]:
    """Send events in a session; return the open exchange, and the id of the session's row.

    `receives` is whether the caller gets the events that follow, which needs chats:read. Raises
    Problem on the first refusal, with the exchange closed.
    """
    exchange = HttpExchange(request._request, principal, TRANSPORT)  # noqa: SLF001 the public request has no scope
    refused: list[RemoteProtocolError] = []
    exchange.connection.on_error = refused.append
    exchange.connection.receives = receives
    exchange.connection.request_sha256 = "" if key is None else key.sha256
    try:
        session_id = await _attach(exchange, session, refused)
        # The client asked for a turn, not for the session in which it takes place.
        exchange.connection.outgoing.take_replies()
        for place, event in enumerate(events, 1):
            named: dict[str, Any] = {**event, "session_id": session_id}
            if key is not None and place == len(events):
                named["event_id"] = key.event_id
            await exchange.take(msgspec.json.encode(named))
            _check(refused)
        if receives and exchange.connection.has_repeated:
            await exchange.follow_running(session_id)
        return exchange, attached_session(exchange.connection, session_id).session.id
    except RemoteProtocolError as error:
        await exchange.close()
        raise problem_of(error) from error
    except BaseException:
        await exchange.close()
        raise


def _check(refused: Sequence[RemoteProtocolError]) -> None:
    """Raise the first refusal as a Problem."""
    if refused:
        raise problem_of(refused[0])


async def opened(request: Request, principal: Principal, session: RestSession) -> OpenSession:
    """Return a session, opening it if necessary; raises Problem."""
    exchange = HttpExchange(request._request, principal, TRANSPORT)  # noqa: SLF001 the public request has no scope
    refused: list[RemoteProtocolError] = []
    exchange.connection.on_error = refused.append
    try:
        session_id = await _attach(exchange, session, refused)
        return attached_session(exchange.connection, session_id).session
    except RemoteProtocolError as error:
        raise problem_of(error) from error
    finally:
        await exchange.close()


async def _attach(
    exchange: HttpExchange, session: RestSession, refused: list[RemoteProtocolError]
) -> str:
    """Attach a session, opening it if necessary; return its id on the wire.

    `refused` are the exchange's errors. Raises Problem.
    """
    connection = exchange.connection
    existing = session.name and await find_session(
        session.name, connection.principal, receives=connection.receives
    )
    if existing:
        await exchange.attach_known(session.name)
        return session.name
    connection.defaults.follows_closed = True
    await exchange.take(msgspec.json.encode(session.create()))
    if not refused:
        return opened_session(connection).session.wire_id
    if refused[0].code != ErrorCode.SESSION_EXISTS or not session.name:
        raise problem_of(refused[0])
    # A concurrent request of the caller has just opened it.
    refused.clear()
    await exchange.attach_known(session.name)
    return session.name


def problem_of(error: RemoteProtocolError) -> Problem:
    """Convert a protocol error to a REST problem."""
    wait = retry_after(error)
    members = {} if wait is None else {"retry_after": wait}
    if error.code == ErrorCode.EVENT_ID_CONFLICT:
        # The request has no event id: the server made one of its key.
        return Problem("idempotency_conflict", PROBLEMS["idempotency_conflict"].remedy)
    if error.code in _CODES:
        return Problem(_CODES[ErrorCode(error.code)], error.message, members=members)
    code = str(error.code)
    title = f"{code.replace('_', ' ').capitalize()}."
    kind = ProblemKind(http_status(ErrorCode(error.code)), title, "")
    return Problem(code, error.message, kind=kind, members=members)
