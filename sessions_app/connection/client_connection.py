"""One client connection, whatever carries it: its sessions, and what they are sent.

Handlers reply here, and subscriptions put the events of chats into the queue; one pump per
transport takes frames out, at the pace of the socket.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from sessions_app.access.pending_inputs import ConnectionBytes, PendingInputs
from sessions_app.connection.attached_session import AttachedSession
from sessions_app.connection.chat_subscription import ChatSubscription
from sessions_app.connection.chat_watch import ChatWatch
from sessions_app.connection.outgoing_queue import DialectFrame, Outgoing, OutgoingQueue
from sessions_app.connection.token_watch import TokenWatch
from sessions_app.frames import now_ms
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sessions_app.access import rates
    from sessions_app.access.auth import BoundSessions
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
# So long a client whose session.create was refused may try again before its socket is closed.
REFUSED_SECONDS: Final = 1.0


@dataclass(kw_only=True, slots=True)
class Defaults:
    """Names for its sessions in the URL and the headers of a connection."""

    agent: str | None = None
    chat: str | None = None
    payment_token: str | None = None
    # Whether a session without an id or a chat of its client's choice is deleted after a time.
    ephemeral: bool = False
    # Whether a session that was closed is followed by another one of its id and chat.
    follows_closed: bool = False
    # This server's address as the client wrote it, `https://host`.
    base_url: str = ""
    # What the client secret of the connection binds its sessions to.
    bound: BoundSessions | None = None


class ClientConnection:
    """A socket or an HTTP exchange of one client, with its sessions.

    All methods run on the process's loop, and none waits but `join_chat` and `leave_groups`. The
    task that takes the client's events attaches, detaches and replies; the process's periodic tasks
    call `cursors`, `read_again`, `principals`, `dismiss`, `end_session` and `watch_tokens`; the
    reader of the layer's groups calls `take_layer_message`. The transport's pump uses `outgoing`.
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
        # Names this connection in the messages of its turns, and in the rows of its sessions.
        self.origin = uuid.uuid4().hex
        self.defaults = defaults or Defaults()
        # Takes note that this connection holds a session no more; without it, it holds none.
        self.release = release
        self.limits = limits
        # A visitor may send less than a person.
        self.protocol = uamp.Connection("server", limits, authenticated=not principal.is_visitor)
        self.sessions: dict[str, AttachedSession] = {}
        self.outgoing = OutgoingQueue(self._missed)
        self.groups = groups.member(self.take_layer_message)
        # The chats of its person, once its client asks for them (chats.watch).
        self.watch: ChatWatch | None = None
        self._layer_groups = groups
        # What other processes run for its sessions, where an exchange waits for that.
        self.remote: RemoteResponses | None = None
        # The agents that its client registered, once it did (UAMP §10.2).
        self.agent_socket: AgentSocket | None = None
        self.presence_id: str | None = None
        self.on_error: Callable[[RemoteProtocolError], None] | None = None
        # Takes note that another process goes on with a response; a socket has joined its chat.
        self.on_elsewhere: Callable[[AttachedSession, str], None] | None = None
        # The last limit that a request of this connection was counted against.
        self.quota: rates.Quota | None = None
        # The digest of the whole request whose turn this is, where its transport repeats requests.
        self.request_sha256 = ""
        # How a transport without a conversation has a turn paid (turn.request.TurnRequest.pay).
        self.pay: Any = None
        # Whether a response.create of this connection led to a response.
        self.has_begun = False
        # The responses that its last response.create led to, and whether an earlier one had begun
        # them: then this connection did not follow them from their start.
        self.started: tuple[str, ...] = ()
        # Why agents do not answer that last one; None where all do.
        self.unanswered: RemoteProtocolError | None = None
        self.has_repeated = False
        # Whether the client sends response.create itself: then nothing begins without it.
        self.asks_itself = False
        self._reader = reader
        self._pending = ConnectionBytes()
        self._tokens = TokenWatch()
        self._refusal: asyncio.TimerHandle | None = None

    # --- Sessions ---

    def attach(self, session: OpenSession, *, cursor: int) -> AttachedSession:
        """Put a session on this connection, whose log was read up to `cursor`."""
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
                "You are not in this chat any more.",
            ),
            on_elsewhere=partial(self._goes_elsewhere, session.wire_id),
        )
        attached = self.sessions[session.wire_id] = AttachedSession(
            session=session,
            subscription=subscription,
            inputs=PendingInputs(self._pending, most=self.limits.pending_inputs),
        )
        return attached

    def _goes_elsewhere(self, session_id: str, response_id: str) -> None:
        attached = self.sessions.get(session_id)
        if attached is not None and self.on_elsewhere is not None:
            self.on_elsewhere(attached, response_id)

    def attached_to(self, event: Event) -> AttachedSession:
        """Return the session that an event belongs to; raises RemoteProtocolError for none."""
        attached = self.sessions.get(event.session_id or "")
        if attached is None:
            raise RemoteProtocolError(ErrorCode.UNKNOWN_SESSION, "no such session here")
        return attached

    def detach(self, session_id: str) -> AttachedSession | None:
        """Take a session off this connection; its responses go on without it."""
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
        """The id under which its sessions are active; none where it does not stay with them."""
        return "" if self.release is None else self.origin

    @property
    def session_ids(self) -> list[str]:
        """The rows of the sessions on this connection."""
        return [attached.session.id for attached in self.sessions.values()]

    def is_busy(self) -> bool:
        """Return whether a response of its sessions goes on by itself, here or elsewhere."""
        return bool(self.remote is not None and self.remote.ids) or any(
            not run.waits_for_client
            for attached in self.sessions.values()
            for run in attached.subscription.runs.values()
        )

    # --- Chats ---

    async def join_chat(self, chat_id: str) -> None:
        """Join a chat's group; while the layer is away, `read_again` makes good what is missed."""
        try:
            await self.groups.join(fanout.chat_group(chat_id))
        except Exception:
            # Whatever a layer raises: what happens in the chat is in its log.
            logger.warning("the group of chat %s was not joined", chat_id, exc_info=True)

    async def _leave_chat(self, chat_id: str) -> None:
        """Leave a chat's group where no session of the chat is left."""
        if not self.sessions_in(chat_id):
            await self.groups.leave(fanout.chat_group(chat_id))

    async def leave_groups(self) -> None:
        """Take no more messages of the layer."""
        await self.groups.leave_all()
        if self.watch is not None:
            await self.watch.stop()

    def watch_chats(self, user_id: int) -> ChatWatch:
        """Return the watch over the chats of the connection's person, which is still to begin."""
        if self.watch is None:
            self.watch = ChatWatch(
                user_id,
                groups=self._layer_groups,
                outgoing=self.outgoing,
                may_act=lambda: not self.principal.is_expired,
            )
        return self.watch

    def take_layer_message(self, message: dict[str, Any]) -> None:
        """Take a message of a group that this connection joined (chat_app.fanout)."""
        if message["type"] == "session.frame":
            self.send_frame(message["frame"], message["session"])
            return
        if self.remote is not None and not self.remote.admit(message):
            return
        for attached in self.sessions_in(message["chat"]):
            attached.subscription.take_layer_message(message)

    def sessions_in(self, chat_id: str | None) -> list[AttachedSession]:
        """Return its sessions of one chat."""
        return [a for a in self.sessions.values() if a.session.chat_id == chat_id]

    def cursors(self) -> dict[str, int]:
        """Return the chats that are followed, and the last place of the log that was sent."""
        found: dict[str, int] = {}
        for attached in self.sessions.values():
            chat_id, cursor = attached.session.chat_id, attached.subscription.cursor
            found[chat_id] = min(cursor, found.get(chat_id, cursor))
        return found

    def read_again(self, chat_id: str) -> None:
        """Read the log of a chat: a message about it was lost."""
        self.outgoing.put(partial(self.join_chat, chat_id))
        for attached in self.sessions_in(chat_id):
            self.outgoing.put(attached.subscription.catch_up)
            self.outgoing.put(attached.subscription.repair)

    def _missed(self) -> Iterator[Work]:
        for attached in self.sessions.values():
            yield attached.subscription.catch_up
            yield attached.subscription.catch_up_running
        if self.watch is not None:
            yield self.watch.announce

    # --- Who may go on ---

    def principals(self) -> set[Principal]:
        """Return who acts on this connection."""
        registered = () if self.agent_socket is None else self.agent_socket.principals()
        return {self.principal, *registered, *(a.session.principal for a in self.sessions.values())}

    def dismiss(self, principal: Principal) -> None:
        """End the sessions of a principal here, and the connection if it is the principal's."""
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

    def end_session(self, row_id: str) -> None:
        """Send the client that a session was ended elsewhere (UAMP §5.3)."""
        for wire_id, attached in list(self.sessions.items()):
            if attached.session.id == row_id:
                self.detach(wire_id)
                self.reply(ev.SessionEnd(session_id=wire_id, reason="ended"), session_id=wire_id)

    def watch_tokens(self, now: float) -> None:
        """Warn of tokens that expire, and end the sessions of those that did (UAMP §10.3).

        `now` is Unix seconds.
        """
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
                    "The token of this session expires within a minute. Send session.update.",
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

    # --- Replies, and the end ---

    def reply(
        self, event: Event, *, session_id: str | None = None, in_reply_to: str | None = None
    ) -> None:
        """Answer the client; a repeat of the event that is answered gets this frame again."""
        text = self.protocol.send(
            event,
            event_id=new_event_id(),
            timestamp=now_ms(),
            session_id=session_id,
            in_reply_to=in_reply_to,
        )
        self.send_frame(text, session_id or "")

    def send_frame(self, text: str, session_id: str) -> None:
        """Send a frame that is ready; a client that does not read its replies is disconnected."""
        self._send_reply(Outgoing(text, session_id))

    def send_dialect_frame(self, text: str) -> None:
        """Send a frame that the dialect of the socket wrote itself, behind the events before."""
        self._send_reply(DialectFrame(text, ""))

    def _send_reply(self, reply: Outgoing) -> None:
        self.outgoing.send(reply)
        if self.outgoing.owed_bytes > 2 * settings.UAMP_OWED_BYTES:
            # Replies cannot be read again. A socket is not read that far; this is a stream whose
            # client sends by other requests and does not read it.
            logger.info("%s does not read its replies; disconnected", self.principal.counted_as)
            self.outgoing.refuse(CLOSE_TRY_AGAIN_LATER)

    @property
    def closed_with(self) -> int | None:
        """The WebSocket close code, once the connection is being closed."""
        return self.outgoing.closed_with

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is sent."""
        return self.outgoing.has_ended

    def close(self, code: int) -> None:
        """End the connection with a WebSocket close code, after what is queued."""
        self.outgoing.close(code)

    def close_if_silent(self, code: int) -> None:
        """Close a socket without a session soon, unless its client sends a frame before.

        A client that waits for `session.created` would otherwise wait for its own timeout. A client
        that opens several sessions goes on with the next one (UAMP §10).
        """
        answers = self.agent_socket is not None and self.agent_socket.daemons
        if self.transport != "websocket" or self.sessions or answers:
            return
        loop = asyncio.get_running_loop()
        self._refusal = loop.call_later(REFUSED_SECONDS, self.close, code)

    def note_frame(self) -> None:
        """Take note that the client sent a frame."""
        if self._refusal is not None:
            self._refusal.cancel()
            self._refusal = None
