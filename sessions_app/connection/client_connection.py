"""A client connection on any transport: its sessions and what they are sent.

Handlers reply through it, and subscriptions queue the events of chats. One pump per transport takes
frames out at the pace of the socket.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from sessions_app.connection.attached_session import AttachedSession
from sessions_app.connection.chat_subscription import ChatSubscription
from sessions_app.connection.chat_watch import ChatWatch
from sessions_app.connection.defaults import Defaults
from sessions_app.connection.outgoing_queue import DialectFrame, Outgoing, OutgoingQueue
from sessions_app.connection.token_watch import TokenWatch
from sessions_app.frames import now_ms
from sessions_app.inputs.pending import ConnectionBytes, PendingInputs
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessions_app.access import rates
    from sessions_app.access.principal import Principal
    from sessions_app.connected.agent_socket import AgentSocket, RegisteredAgent
    from sessions_app.connection.layer_groups import LayerGroups
    from sessions_app.connection.log_reader import LogReader
    from sessions_app.connection.outgoing_queue import Work
    from sessions_app.connection.remote_responses import RemoteResponses
    from sessions_app.records import OpenSession
    from uamp.events import Event

logger = logging.getLogger(__name__)

CLOSE_RESTART: Final = 1012
CLOSE_UNAUTHORIZED: Final = 4401
CLOSE_TRY_AGAIN_LATER: Final = 1013
CLOSE_SILENT: Final = 4408
# How long a client may retry after a refused session.create before its socket is closed.
REFUSED_SECONDS: Final = 1.0


class ClientConnection:
    """A client's socket or HTTP exchange, with its sessions.

    All methods run on the process's loop; only `join_chat` and `leave_groups` wait. The task that
    handles the client's events attaches, detaches and replies. The process's periodic tasks call
    `cursors`, `read_again`, `principals`, `dismiss`, `end_session`, `disconnect_agents` and
    `watch_tokens`. The reader of the layer's groups calls `take_layer_message`. The transport's
    pump uses `outgoing`.
    """

    def __init__(
        self,
        *,
        principal: Principal,
        transport: str,
        reader: LogReader,
        groups: LayerGroups,
        defaults: Defaults | None = None,
        release: Callable[[str], None] | None = None,
        limits: uamp.Limits = uamp.DEFAULT_LIMITS,
    ) -> None:
        self.principal = principal
        self.transport = transport
        # Identifies this connection in the messages of its turns and the rows of its sessions.
        self.origin = uuid.uuid4().hex
        self.defaults = defaults or Defaults()
        # Called when this connection no longer holds a session; None if it never holds any.
        self.release = release
        self.limits = limits
        # Visitors may send less than people who are signed in.
        self.protocol = uamp.Connection("server", limits, authenticated=not principal.is_visitor)
        self.sessions: dict[str, AttachedSession] = {}
        self.outgoing = OutgoingQueue(self._missed)
        self.groups = groups.member(self.take_layer_message)
        # The watch over the person's chats, once the client asks for it (chats.watch).
        self.watch: ChatWatch | None = None
        self._layer_groups = groups
        # Responses of its sessions in other processes, if an exchange is waiting for any.
        self.remote: RemoteResponses | None = None
        # The agents that its client registered, if any (UAMP §10.2).
        self.agent_socket: AgentSocket | None = None
        self.presence_id: str | None = None
        self.on_error: Callable[[RemoteProtocolError], None] | None = None
        # Called when another process continues a response. Sockets have joined the chat anyway.
        self.on_elsewhere: Callable[[AttachedSession, str], None] | None = None
        # The last rate limit that a request of this connection counted against.
        self.quota: rates.Quota | None = None
        # The digest of the whole request behind the turn, on transports that repeat requests.
        self.request_sha256 = ""
        # How transports without a conversation pay for turns (turn.request.TurnRequest.pay).
        self.pay: Any = None
        # Whether a response.create of this connection has led to a response.
        self.has_begun = False
        # The responses to its last response.create; not followed from the start if `has_repeated`.
        self.started: tuple[str, ...] = ()
        # Why agents do not answer the last response.create; None if all do.
        self.unanswered: RemoteProtocolError | None = None
        self.has_repeated = False
        # Whether its client receives the sessions' events, and so needs the right to read.
        self.receives = True
        # Whether the client sends response.create itself, so that no turn may start without it.
        self.asks_itself = False
        self._reader = reader
        self._pending = ConnectionBytes()
        self._tokens = TokenWatch()
        self._refusal: asyncio.TimerHandle | None = None

    # --- Sessions ---

    def attach(self, session: OpenSession, *, cursor: int) -> AttachedSession:
        """Attach a session whose log has been read up to `cursor`."""
        subscription = ChatSubscription(
            session,
            cursor=cursor,
            reader=self._reader,
            outgoing=self.outgoing,
            origin=self.origin,
            on_left=partial(
                self._dismiss_session,
                session.wire_id,
                ErrorCode.CHAT_NOT_FOUND,
                "You are no longer in this chat.",
            ),
            on_elsewhere=partial(self._goes_elsewhere, session.wire_id),
        )
        attached = self.sessions[session.wire_id] = AttachedSession(
            session=session,
            subscription=subscription,
            inputs=PendingInputs(self._pending, limit=self.limits.pending_inputs),
        )
        return attached

    def _goes_elsewhere(self, session_id: str, response_id: str) -> None:
        attached = self.sessions.get(session_id)
        if attached is not None and self.on_elsewhere is not None:
            self.on_elsewhere(attached, response_id)

    def attached_to(self, event: Event) -> AttachedSession:
        """Return the session that an event belongs to, or raise RemoteProtocolError."""
        attached = self.sessions.get(event.session_id or "")
        if attached is None:
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_SESSION, "this connection has no such session"
            )
        return attached

    def detach(self, session_id: str) -> AttachedSession | None:
        """Detach a session from this connection; its responses continue without it."""
        attached = self.sessions.pop(session_id, None)
        if attached is not None:
            if attached.auto_respond is not None:
                attached.auto_respond.cancel()
            attached.inputs.take()
            attached.subscription.close()
            self.outgoing.put(partial(self._leave_chat, attached.session.chat_id))
        return attached

    @property
    def held_by(self) -> str:
        """The id under which its sessions are active; "" if it does not hold them."""
        return "" if self.release is None else self.origin

    @property
    def session_ids(self) -> list[str]:
        """The row ids of the sessions on this connection."""
        return [attached.session.id for attached in self.sessions.values()]

    def is_busy(self) -> bool:
        """Return whether a response of its sessions can proceed without input, in any process."""
        return bool(self.remote is not None and self.remote.ids) or any(
            not run.waits_for_client
            for attached in self.sessions.values()
            for run in attached.subscription.runs.values()
        )

    # --- Chats ---

    async def join_chat(self, chat_id: str) -> None:
        """Join a chat's group; if the layer is down, `read_again` makes up for it."""
        try:
            await self.groups.join(fanout.chat_group(chat_id))
        except Exception:
            # Whatever a layer raises, the chat's events are in its log.
            logger.warning("the group of chat %s was not joined", chat_id, exc_info=True)

    async def _leave_chat(self, chat_id: str) -> None:
        """Leave a chat's group if no session of the chat remains."""
        if not self.sessions_in(chat_id):
            await self.groups.leave(fanout.chat_group(chat_id))

    async def leave_groups(self) -> None:
        """Stop receiving messages of the layer."""
        await self.groups.leave_all()
        if self.watch is not None:
            await self.watch.stop()

    def watch_chats(self, user_id: int) -> ChatWatch:
        """Return the watch over the person's chats; the caller must begin it."""
        if self.watch is None:
            self.watch = ChatWatch(
                user_id,
                groups=self._layer_groups,
                outgoing=self.outgoing,
                may_act=lambda: not self.principal.is_expired,
            )
        return self.watch

    def take_layer_message(self, message: dict[str, Any]) -> None:
        """Accept a message of a group that this connection has joined (chat_app.fanout)."""
        if message["type"] == "session.frame":
            self.send_frame(message["frame"], message["session"])
            return
        response_id, remote = message["response"], self.remote
        is_awaited = remote is not None and response_id in remote.ids
        if remote is not None and not remote.admit(message):
            return
        for attached in self.sessions_in(message["chat"]):
            if is_awaited or not attached.is_withheld(response_id):
                attached.subscription.take_layer_message(message)

    def sessions_in(self, chat_id: str | None) -> list[AttachedSession]:
        """Return this connection's sessions of a chat."""
        return [a for a in self.sessions.values() if a.session.chat_id == chat_id]

    def cursors(self) -> dict[str, int]:
        """Return the followed chats with the last log position sent."""
        cursors: dict[str, int] = {}
        for attached in self._received():
            chat_id, cursor = attached.session.chat_id, attached.subscription.cursor
            cursors[chat_id] = min(cursor, cursors.get(chat_id, cursor))
        return cursors

    def read_again(self, chat_id: str) -> None:
        """Reread a chat's log after a message about it was lost."""
        self.outgoing.put(partial(self.join_chat, chat_id))
        for attached in self._received():
            if attached.session.chat_id == chat_id:
                self.outgoing.put(attached.subscription.catch_up)
                self.outgoing.put(attached.subscription.repair)

    def _received(self) -> list[AttachedSession]:
        is_awaiting = self.remote is not None and bool(self.remote.ids)
        return [a for a in self.sessions.values() if is_awaiting or not a.is_withheld()]

    def _missed(self) -> Iterator[Work]:
        for attached in self._received():
            yield attached.subscription.catch_up
            yield attached.subscription.catch_up_running
        if self.watch is not None:
            yield self.watch.announce

    # --- Authorization ---

    def principals(self) -> set[Principal]:
        """Return the principals that act on this connection."""
        registered = () if self.agent_socket is None else self.agent_socket.principals()
        return {self.principal, *registered, *(a.session.principal for a in self.sessions.values())}

    def dismiss(self, principal: Principal) -> None:
        """End a principal's sessions here, and the connection itself if it is the principal's."""
        for session_id, attached in list(self.sessions.items()):
            if attached.session.principal == principal:
                self._dismiss_session(
                    session_id,
                    ErrorCode.UNAUTHORIZED,
                    "You are signed out, or the token was revoked. Sign in again.",
                )
        if (link := self.agent_socket) is not None:
            registered = link.registered_by(principal)
            self.end_registrations(registered, ErrorCode.UNAUTHORIZED, "The token was revoked.")
        if self.principal == principal:
            self.close(CLOSE_UNAUTHORIZED)

    def end_registrations(
        self, daemons: Iterable[RegisteredAgent], code: ErrorCode, message: str
    ) -> None:
        """End agents that the client registered here, and their answers."""
        for daemon in daemons:
            self._send_error(daemon.session_id, code, message)
            daemon.link.drop(daemon)
            self.protocol.detach(daemon.session_id)

    def disconnect_agents(self, daemons: Iterable[RegisteredAgent]) -> None:
        """End agents that an operator disconnected, their answers, and a socket without others."""
        for daemon in daemons:
            self.reply(ev.SessionEnd(reason="ended by an operator"), session_id=daemon.session_id)
            daemon.link.drop(daemon)
            self.protocol.detach(daemon.session_id)
            if not (self.sessions or daemon.link.daemons):
                self.close(CLOSE_TRY_AGAIN_LATER)

    def end_session(self, row_id: str) -> None:
        """Notify the client that a session was ended elsewhere (UAMP §5.3)."""
        for wire_id, attached in list(self.sessions.items()):
            if attached.session.id == row_id:
                self.detach(wire_id)
                self.reply(ev.SessionEnd(session_id=wire_id, reason="ended"), session_id=wire_id)

    def watch_tokens(self, now: float) -> None:
        """Warn of expiring tokens, and end sessions expired by `now`, a Unix time (UAMP §10.3)."""
        if (link := self.agent_socket) is not None:
            self.end_registrations(link.expired(), ErrorCode.TOKEN_EXPIRED, "The token expired.")
        sessions = [attached.session for attached in self.sessions.values()]
        for session_id, code in self._tokens.due(sessions, now):
            if code == ErrorCode.TOKEN_EXPIRED:
                self._dismiss_session(session_id, code, "The token expired.")
            else:
                self._send_error(
                    session_id,
                    code,
                    "This session's token expires within a minute. Send session.update.",
                )

    def _dismiss_session(self, session_id: str, code: ErrorCode, message: str) -> None:
        self._send_error(session_id, code, message)
        attached = self.detach(session_id)
        if attached is not None and self.release is not None:
            self.release(attached.session.id)
        self.protocol.detach(session_id)

    def _send_error(self, session_id: str, code: ErrorCode, message: str) -> None:
        error = RemoteProtocolError(code, message, session_id=session_id)
        self.reply(error.to_event(), session_id=session_id)

    # --- Replies and the end ---

    def reply(
        self, event: Event, *, session_id: str | None = None, in_reply_to: str | None = None
    ) -> None:
        """Answer the client; repeats of the same event get the same frame again."""
        text = self.protocol.send(
            event,
            event_id=new_event_id(),
            timestamp=now_ms(),
            session_id=session_id,
            in_reply_to=in_reply_to,
        )
        self.send_frame(text, session_id or "")

    def send_frame(self, text: str, session_id: str) -> None:
        """Send a finished frame; clients that do not read their replies are disconnected."""
        self._send_reply(Outgoing(text, session_id))

    def send_dialect_frame(self, text: str) -> None:
        """Send a frame in the socket's own dialect, after the events that are not held back."""
        self._send_reply(DialectFrame(text, ""))

    def _send_reply(self, reply: Outgoing) -> None:
        self.outgoing.send(reply)
        if self.outgoing.pending_bytes > 2 * settings.UAMP_OWED_BYTES:
            # Replies cannot be read again. Sockets stop being read before this point, so this is a
            # stream whose client sends through other requests and does not read the stream.
            logger.info("%s does not read its replies; disconnected", self.principal.counted_as)
            self.outgoing.refuse(CLOSE_TRY_AGAIN_LATER)

    @property
    def closed_with(self) -> int | None:
        """The WebSocket close code, once the connection is closing."""
        return self.outgoing.closed_with

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will be sent."""
        return self.outgoing.has_ended

    def close(self, code: int) -> None:
        """End the connection with a WebSocket close code once the queue is sent."""
        self.outgoing.close(code)

    def close_if_silent(self, code: int) -> None:
        """Close a socket without sessions soon, unless its client sends another frame.

        A client waiting for `session.created` would otherwise run into its own timeout. A client
        that opens several sessions proceeds with the next one (UAMP §10).
        """
        answers = self.agent_socket is not None and self.agent_socket.daemons
        if self.transport != "websocket" or self.sessions or answers:
            return
        loop = asyncio.get_running_loop()
        self._refusal = loop.call_later(REFUSED_SECONDS, self.close, code)

    def note_frame(self) -> None:
        """Record that the client sent a frame."""
        if self._refusal is not None:
            self._refusal.cancel()
            self._refusal = None
