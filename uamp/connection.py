"""The sans-I/O state machine of one connection: frames in, events out, and back (UAMP §10, §14.2).

The shell that owns the socket passes every frame through here and answers each frame before passing
the next. The open sessions follow from the events sent and received.

The shell calls ``receive`` for each frame and handles the events it returns. On RemoteProtocolError
it sends ``error.to_event()`` and, if ``error.fatal``, closes the socket with ``error.close_code``.
It sends the frames that ``send`` returns.
"""

from collections import deque
from typing import Literal

import msgspec

from uamp.codec.frames import Sender, decode, encode
from uamp.errors import ErrorCode, LocalProtocolError, RemoteProtocolError
from uamp.events import (
    CLIENT_EVENTS,
    SERVER_EVENTS,
    CapabilitiesAnnounced,
    CapabilitiesQuery,
    ChatsWatch,
    InputTyping,
    Ping,
    Pong,
    SessionCreate,
    SessionCreated,
    SessionEnd,
    SessionError,
    SessionUpdate,
)
from uamp.events.base import Event, UnknownEvent, type_of
from uamp.limits import DEFAULT_LIMITS, Limits
from uamp.memory import EventMemory, digest_of

Role = Literal["server", "client"]

VERSION = "1.0"
_MAJOR = VERSION.partition(".")[0]
_MINUTE = 60.0
# These concern the connection itself, so they need no session.
_CONNECTION_EVENTS = (
    SessionCreate,
    CapabilitiesQuery,
    ChatsWatch,
    Ping,
    CapabilitiesAnnounced,
    SessionError,
    Pong,
)
# Repeats of these change nothing, so they are handled again rather than remembered.
_REMEMBERED = frozenset(CLIENT_EVENTS.values()) - {
    Ping,
    CapabilitiesQuery,
    ChatsWatch,
    InputTyping,
}


class Repeated(Event, frozen=True, kw_only=True, tag="repeated"):
    """An event received before: it must not be handled again, only answered again.

    ``replies`` are the frames that were sent with its id as ``in_reply_to``.
    """

    event: Event
    replies: tuple[str, ...] = ()


class Connection:
    """The protocol state of one connection, for either side.

    ``authenticated`` selects one of the two frame limits; the socket's owner sets it once the peer
    is known. No method blocks and there is no lock: all calls must come from one thread.
    """

    def __init__(
        self,
        role: Role,
        limits: Limits = DEFAULT_LIMITS,
        *,
        authenticated: bool = True,
    ) -> None:
        self.role = role
        self.limits = limits
        self.authenticated = authenticated
        self._early_limits = msgspec.structs.replace(
            limits, frame_bytes=min(limits.frame_bytes, limits.unauthenticated_frame_bytes)
        )
        # Whether the client registered an agent and therefore answers turns too (UAMP §10.2).
        self.takes_answers = False
        self._sessions: dict[str, None] = {}
        # The turns sent to a connected agent, each of them a session of its own.
        self._turns: set[str] = set()
        self._memory: dict[str | None, EventMemory] = {}
        self._bad_frames: deque[float] = deque()
        self._refused_id: str | None = None

    @property
    def sessions(self) -> tuple[str, ...]:
        """The ids of the open sessions, oldest first."""
        return tuple(self._sessions)

    def attach(self, session_id: str) -> None:
        """Open a session that already exists, created by HTTP requests."""
        self._sessions[session_id] = None

    def begin_turn(self, session_id: str) -> None:
        """Start accepting the events of a turn sent to a connected agent (UAMP §10.2)."""
        self._turns.add(session_id)

    def end_turn(self, session_id: str) -> None:
        """Stop accepting events of a turn."""
        self._turns.discard(session_id)
        self._memory.pop(session_id, None)

    def detach(self, session_id: str) -> None:
        """Forget a session without sending anything."""
        self._sessions.pop(session_id, None)
        self._memory.pop(session_id, None)

    def forget(self, event: Event) -> None:
        """Treat ``event`` as never received: the work it was part of did not happen."""
        memory = self._memory.get(event.session_id)
        if memory is not None and event.event_id is not None and event.event_id in memory:
            memory.forget(event.event_id)

    def receive(self, frame: str | bytes, *, now: float) -> list[Event]:
        """Return the events in a WebSocket frame; ``now`` is in seconds of any monotonic clock.

        An event of a single session comes back with that session's id; a session.update without one
        concerns all sessions. A repeated event comes back as Repeated, an unknown one as
        UnknownEvent. Raises RemoteProtocolError, which is fatal if there were too many bad frames
        within a minute.
        """
        if isinstance(frame, bytes):
            error = RemoteProtocolError(ErrorCode.BINARY_FRAME, "events are text frames")
            raise self._count_bad_frame(error, now)
        return self.receive_body(frame, now=now)

    def receive_body(self, body: str | bytes, *, now: float) -> list[Event]:
        """Return the events in an HTTP body (UAMP §13.2), str or bytes; else as ``receive``."""
        self._refused_id = None
        try:
            return [self._receive(self._decode(body, now))]
        except RemoteProtocolError as error:
            self._refused_id = error.event_id
            raise

    def _decode(self, body: str | bytes, now: float) -> Event:
        limits = self.limits if self.authenticated else self._early_limits
        sender: Sender = "client" if self.role == "server" else "server"
        if self.takes_answers:
            sender = "agent"
        try:
            return decode(body, limits=limits, sender=sender)
        except RemoteProtocolError as error:
            raise self._count_bad_frame(error, now) from error.__cause__

    def _receive(self, event: Event) -> Event:
        if isinstance(event, UnknownEvent):
            return event
        if isinstance(event, SessionCreate | SessionCreated):
            _check_version(event)
        if self.role == "server":
            return self._accept(event)
        self._observe(event, event.session_id)
        return event

    def _count_bad_frame(self, error: RemoteProtocolError, now: float) -> RemoteProtocolError:
        """Return ``error``, or a fatal error in its place if there were too many."""
        self._bad_frames.append(now)
        while self._bad_frames[0] <= now - _MINUTE:
            self._bad_frames.popleft()
        if error.fatal or len(self._bad_frames) <= self.limits.bad_frames_per_minute:
            return error
        return RemoteProtocolError(
            ErrorCode.TOO_MANY_BAD_FRAMES,
            f"too many bad frames; the last one: {error.message}",
            event_id=error.event_id,
            session_id=error.session_id,
        )

    def _accept(self, event: Event) -> Event:
        """Return ``event`` with its session; a rejected event leaves no trace."""
        remembered = event.event_id is not None and type(event) in _REMEMBERED
        digest = digest_of(event) if remembered else b""
        # A session's memory goes with it, so the connection remembers the session's own end.
        is_end = isinstance(event, SessionEnd)
        if remembered and is_end and (repeated := self._recall(event, None, digest)):
            return repeated
        scope = self._scope(event)
        memory = None if is_end else scope
        if remembered and (repeated := self._recall(event, memory, digest)):
            return repeated
        if isinstance(event, SessionCreate):
            self._check_create(event)
        if remembered:
            self._remember(event, memory, digest)
        self._observe(event, scope)
        if scope is None or event.session_id is not None:
            return event
        return msgspec.structs.replace(event, session_id=scope)

    def _scope(self, event: Event) -> str | None:
        """Return the session that ``event`` belongs to, or None for the connection itself."""
        if isinstance(event, _CONNECTION_EVENTS):
            return None
        if event.session_id is not None:
            if event.session_id not in self._sessions and event.session_id not in self._turns:
                raise self._refusal(
                    event, ErrorCode.UNKNOWN_SESSION, "this connection has no such session"
                )
            return event.session_id
        if not self._sessions:
            raise self._refusal(
                event,
                ErrorCode.SESSION_REQUIRED,
                "Send session.create first, or specify one of your sessions in session_id.",
            )
        if isinstance(event, SessionUpdate):
            return None
        if len(self._sessions) > 1:
            raise self._refusal(
                event,
                ErrorCode.SESSION_REQUIRED,
                "Several sessions are open: specify one of them in session_id.",
            )
        return next(iter(self._sessions))

    def _check_create(self, event: SessionCreate) -> None:
        session_id = (event.resume.session_id if event.resume else None) or event.session.id
        if session_id is not None and session_id in self._sessions:
            raise self._refusal(
                event, ErrorCode.SESSION_EXISTS, "that session is already open on this connection"
            )
        if len(self._sessions) >= self.limits.sessions_per_connection:
            raise self._refusal(
                event,
                ErrorCode.TOO_MANY_SESSIONS,
                f"at most {self.limits.sessions_per_connection} sessions",
            )

    @staticmethod
    def _refusal(event: Event, code: ErrorCode, message: str) -> RemoteProtocolError:
        return RemoteProtocolError(
            code, message, event_id=event.event_id, session_id=event.session_id
        )

    def _recall(self, event: Event, scope: str | None, digest: bytes) -> Repeated | None:
        """Return the Repeated for ``event`` if its id is known; reject a different body."""
        memory = self._memory.get(scope)
        if memory is None or event.event_id is None or event.event_id not in memory:
            return None
        if memory.digest(event.event_id) != digest:
            raise self._refusal(
                event, ErrorCode.EVENT_ID_CONFLICT, "this event_id was used with a different body"
            )
        if scope is not None and event.session_id is None:
            event = msgspec.structs.replace(event, session_id=scope)
        return Repeated(event=event, replies=memory.replies_to(str(event.event_id)))

    def _remember(self, event: Event, scope: str | None, digest: bytes) -> None:
        if scope not in self._memory:
            self._memory[scope] = EventMemory(self.limits)
        self._memory[scope].add(str(event.event_id), digest)

    def _observe(self, event: Event, session_id: str | None) -> None:
        """Track the sessions that ``event``, sent or received, opens and closes."""
        if isinstance(event, SessionCreated):
            self._sessions[_session_id_of(event)] = None
        elif isinstance(event, SessionEnd):
            if session_id is not None:
                self.detach(session_id)
            elif len(self._sessions) == 1:
                self.detach(next(iter(self._sessions)))

    def send(
        self,
        event: Event,
        *,
        event_id: str,
        timestamp: float,
        session_id: str | None = None,
        seq: int | None = None,
        in_reply_to: str | None = None,
    ) -> str:
        """Encode ``event`` as a frame; the given values fill in only missing fields.

        ``in_reply_to`` is the id of the received event that this frame answers: a repeat of that
        event gets the same frame again. An event whose first answer is a session.error counts as
        never received, since it had no effect. Raises LocalProtocolError for an event that this
        side does not send and for a second session.created of an open session.
        """
        table = SERVER_EVENTS if self.role == "server" else CLIENT_EVENTS
        type_name = type_of(event)
        if type_name not in table:
            raise LocalProtocolError(f"a {self.role} does not send {type_name}")
        if isinstance(event, SessionCreated) and _session_id_of(event) in self._sessions:
            raise LocalProtocolError(f"session {_session_id_of(event)} is open already")
        frame = encode(
            event, event_id=event_id, timestamp=timestamp, session_id=session_id, seq=seq
        )
        if in_reply_to is not None:
            self._keep_reply(event, in_reply_to, event.session_id or session_id, frame)
        self._observe(event, event.session_id or session_id)
        return frame

    def _keep_reply(self, reply: Event, event_id: str, session_id: str | None, frame: str) -> None:
        if isinstance(reply, SessionError) and event_id == self._refused_id:
            return  # answers a frame that left no trace, even if its id was used before
        scopes = [None, *self._sessions] if session_id is None else [session_id, None]
        for scope in scopes:
            memory = self._memory.get(scope)
            if memory is not None and event_id in memory:
                if isinstance(reply, SessionError) and not memory.replies_to(event_id):
                    memory.forget(event_id)
                else:
                    memory.keep_reply(event_id, frame)
                return


def _check_version(event: SessionCreate | SessionCreated) -> None:
    if event.uamp_version.partition(".")[0] != _MAJOR:
        raise RemoteProtocolError(
            ErrorCode.VERSION_MISMATCH,
            f"this side speaks UAMP {VERSION}",
            event_id=event.event_id,
            session_id=event.session_id,
            details={"supported": [VERSION]},
        )


def _session_id_of(event: SessionCreated) -> str:
    return event.session_id or event.session.id
