"""The exchange between a daemon and a server about agents, without a socket (UAMP §10.2).

The daemon calls `begin` on every new connection and `lost` when it breaks, passes each event of the
server to `receive`, sends the events from `take_events`, and does the work from `take_work`. All
calls come from one thread.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from uamp.client.errors import ClientError, error_of
from uamp.codec.frames import encode, to_dict
from uamp.errors import ErrorCode
from uamp.events import (
    ErrorDetail,
    InputText,
    Ping,
    Pong,
    ResponseCancel,
    ResponseError,
    SessionCreate,
    SessionCreated,
    SessionEnd,
    SessionError,
    ToolResult,
)
from uamp.events.base import Event
from uamp.types.capabilities import Capabilities

_PASSING = frozenset(
    {"internal_error", "rate_limited", "too_many_sessions", "unavailable", "busy", "timeout"}
)
"""Registration errors that may be temporary."""


@dataclass(frozen=True, kw_only=True)
class Registration:
    """An agent under its public name, and the token that may register it."""

    name: str
    token: str
    capabilities: Capabilities


@dataclass(frozen=True, kw_only=True)
class RequestedAnswer:
    """An answer that the server requests from an agent; its events carry both ids."""

    agent: str
    session_id: str
    response_id: str
    input: InputText
    # Whether its session has no other answers.
    is_turn: bool = False


@dataclass(frozen=True, kw_only=True)
class Cancel:
    """An answer to cancel."""

    response_id: str


@dataclass(frozen=True, kw_only=True)
class ToolAnswered:
    """The result of a call of the chat's tool, in an answer."""

    response_id: str
    result: ToolResult


@dataclass(frozen=True, kw_only=True)
class Registered:
    """The server has registered the agent."""

    agent: str


@dataclass(frozen=True, kw_only=True)
class Refused:
    """The server refused an agent; `again_after` is in seconds, None if the refusal is final."""

    agent: str
    error: ClientError
    again_after: float | None


Work = RequestedAnswer | Cancel | ToolAnswered | Registered | Refused


class AgentLink:
    """The registrations and answers of one daemon, across successive connections.

    At most `max_answers` run and as many wait; further ones are refused (busy). While it
    `is_draining`, all new answers are refused (agent_offline).
    """

    def __init__(
        self,
        registrations: Mapping[str, Registration],
        *,
        max_answers: int,
        new_id: Callable[[], str],
    ) -> None:
        self.is_draining = False
        self._registrations = registrations
        self._limit = 2 * max_answers
        self._new_id = new_id
        self._creating: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._answers: dict[str, RequestedAnswer] = {}
        self._events: deque[Event] = deque()
        self._work: deque[Work] = deque()

    @property
    def registered(self) -> frozenset[str]:
        """The names of the registered agents."""
        return frozenset(self._sessions.values())

    @property
    def sessions(self) -> tuple[str, ...]:
        """The ids of the agents' sessions."""
        return tuple(self._sessions)

    # --- The connection ---

    def begin(self) -> None:
        """Register all agents on a new connection."""
        self.connection_lost()
        for name in self._registrations:
            self.register(name)

    def register(self, name: str) -> None:
        """Register one agent."""
        registration = self._registrations[name]
        event_id = self._new_id()
        self._creating[event_id] = name
        self._events.append(
            SessionCreate(
                event_id=event_id,
                agent=name,
                token=registration.token,
                client_capabilities=registration.capabilities,
            )
        )

    def connection_lost(self) -> None:
        """Note that the connection is lost, which ends the server's answers."""
        self._creating.clear()
        self._sessions.clear()
        self._events.clear()
        self._work.clear()
        self._work.extend(Cancel(response_id=response_id) for response_id in self._answers)

    def leave(self) -> None:
        """End the sessions of all agents."""
        self._events.extend(SessionEnd(session_id=session_id) for session_id in self._sessions)
        self._sessions.clear()

    def ended(self, response_id: str) -> None:
        """Note that an answer has ended."""
        self._answers.pop(response_id, None)

    def take_events(self) -> list[Event]:
        """Return the events to send now."""
        events = list(self._events)
        self._events.clear()
        return events

    def take_work(self) -> list[Work]:
        """Return the work to do now."""
        work = list(self._work)
        self._work.clear()
        return work

    # --- What the server sends ---

    def receive(self, event: Event) -> None:
        """Process an event; those that concern no agent are ignored."""
        match event:
            case SessionCreated():
                self._created(event)
            case SessionError():
                self._session_error(event)
            case SessionEnd(session_id=str() as session_id) if session_id in self._sessions:
                self._ended(session_id)
            case InputText():
                self._input(event)
            case ResponseCancel():
                self._cancel(event.session_id, event.response_id)
            case ResponseError():
                # The server rejected part of an answer, so sending more is pointless.
                self._cancel(event.session_id, event.response_id)
            case ToolResult(session_id=session_id):
                self._work.extend(
                    ToolAnswered(response_id=answer.response_id, result=event)
                    for answer in self._answers.values()
                    if answer.session_id == session_id
                )
            case Ping():
                self._events.append(Pong(reply_to=event.event_id))

    def _created(self, event: SessionCreated) -> None:
        agent_name = event.agent or event.session.agent
        cause = next(
            (event_id for event_id, name in self._creating.items() if name == agent_name),
            next(iter(self._creating), None),
        )
        if cause is None:
            return
        name = self._creating.pop(cause)
        self._sessions[event.session_id or event.session.id] = name
        self._work.append(Registered(agent=name))

    def _session_error(self, event: SessionError) -> None:
        cause = (event.error.details or {}).get("event_id")
        name = self._creating.pop(cause, None) if isinstance(cause, str) else None
        if name is None and cause is None and event.session_id is not None:
            name = self._sessions.pop(event.session_id, None)
        if name is None:
            return
        error = error_of(event.error)
        is_temporary = event.error.code in _PASSING
        after = (error.retry_after or 5.0) if is_temporary else None
        self._work.append(Refused(agent=name, error=error, again_after=after))

    def _ended(self, session_id: str) -> None:
        name = self._sessions.pop(session_id)
        error = ClientError("The server ended the agent's session.", code="session_ended")
        self._work.append(Refused(agent=name, error=error, again_after=5.0))

    def _input(self, event: InputText) -> None:
        session_id = event.session_id or ""
        session_agent = self._sessions.get(session_id)
        name = event.agent if event.agent in self._registrations else session_agent
        response_id = f"resp_{self._new_id()}"
        if name is None:
            message = "This daemon has no agent with that session or name."
            self._refuse(event, response_id, ErrorCode.AGENT_NOT_FOUND, message)
        elif self.is_draining:
            message = "The agent's daemon is stopping."
            self._refuse(event, response_id, ErrorCode.AGENT_OFFLINE, message)
        elif len(self._answers) >= self._limit:
            message = "The agent's daemon has reached its limit of answers."
            self._refuse(event, response_id, ErrorCode.BUSY, message)
        else:
            if session_agent is None:
                # The session has a single turn: a second input replaces the first.
                self._cancel(session_id, None)
            self._answers[response_id] = answer = RequestedAnswer(
                agent=name,
                session_id=session_id,
                response_id=response_id,
                input=event,
                is_turn=session_agent is None,
            )
            self._work.append(answer)

    def _refuse(self, event: InputText, response_id: str, code: ErrorCode, message: str) -> None:
        self._events.append(
            ResponseError(
                session_id=event.session_id,
                response_id=response_id,
                error=ErrorDetail(code=code, message=message),
            )
        )

    def _cancel(self, session_id: str | None, response_id: str | None) -> None:
        # A turn's session has one answer, which the server knows by a response id of its own. The
        # agents' sessions have several, also after the daemon has left them.
        for answer in self._answers.values():
            if response_id == answer.response_id or (
                session_id == answer.session_id and (answer.is_turn or response_id is None)
            ):
                self._work.append(Cancel(response_id=answer.response_id))


def frame_of(event: Event, *, event_id: str, timestamp: int, session_id: str | None = None) -> str:
    """Encode an event in the daemon's format; the arguments fill in missing members only.

    The agent and token of a registration go into its `session` (docs/transports.md, connected
    agents).
    """
    if not isinstance(event, SessionCreate):
        return encode(event, event_id=event_id, timestamp=timestamp, session_id=session_id or None)
    frame = to_dict(msgspec.structs.replace(event, timestamp=timestamp))
    frame["session"] |= {name: frame.pop(name) for name in ("agent", "token") if name in frame}
    return msgspec.json.encode(frame).decode()
