"""One client connection, whatever carries it: its sessions, and the frames that wait for it.

Handlers put replies and runners put events here; one pump per transport takes frames out, at the
pace of the socket. The queue is bounded in bytes (UAMP_OWED_BYTES): a client that falls behind
loses nothing but the queue, because its subscriptions read the log and the running texts again;
a client that sends without reading the answers is not read any more (`room`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec
from django.conf import settings
from django.db import InterfaceError, OperationalError

import uamp
from sessions_app.access.pending_inputs import ConnectionBytes, PendingInputs
from sessions_app.connection.attached_session import AttachedSession, RunListener
from sessions_app.connection.chat_subscription import ChatSubscription
from sessions_app.frames import TERMINAL, new_event_id, now_ms
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from sessions_app.access import rates
    from sessions_app.access.principal import Principal
    from sessions_app.connection.chat_subscription import LogReader
    from sessions_app.records import OpenSession
    from uamp.events import Event

logger = logging.getLogger(__name__)

QUEUE_ITEMS: Final = 4096
# One batch for the socket: what is sent before the pump looks again.
BATCH_FRAMES: Final = 256
BATCH_BYTES: Final = 1024 * 1024
READ_AGAIN_SECONDS: Final = 1.0
TOKEN_GRACE_SECONDS: Final = 60.0
CLOSE_RESTART: Final = 1012
CLOSE_UNAUTHORIZED: Final = 4401
CLOSE_TRY_AGAIN_LATER: Final = 1013
# The memory of a queued item without its text.
ITEM_BYTES: Final = 256
# So long a client whose session.create was refused may try again before its socket is closed.
REFUSED_SECONDS: Final = 1.0

# Something that a subscription does in its turn; a coroutine where it may read the log.
Work: TypeAlias = "Callable[[], Coroutine[Any, Any, None] | None]"


# How a frame begins that asks a client for something.
_ASKING: Final = (
    '{"type":"tool.call"',
    '{"type":"tool.approval_required"',
    '{"type":"payment.required"',
)


class _Asked(msgspec.Struct):
    type: str
    call_id: str = ""
    response_id: str = ""


class Outgoing(NamedTuple):
    """A frame for the client; `seq` where it is durable."""

    text: str
    session_id: str
    seq: int | None = None


@dataclass(kw_only=True, slots=True)
class Defaults:
    """What the URL and the headers of a connection say for its sessions."""

    agent: str | None = None
    chat: str | None = None
    payment_token: str | None = None


class ClientConnection:
    """The client's side of one connection."""

    def __init__(
        self,
        *,
        principal: Principal,
        transport: str,
        source: LogReader,
        origin: str,
        follow: Callable[[str], Coroutine[Any, Any, None]],
        defaults: Defaults | None = None,
        release: Callable[[str], None] | None = None,
        limits: uamp.Limits = uamp.DEFAULT_LIMITS,
    ) -> None:
        self.principal = principal
        self.transport = transport
        self.origin = origin
        self.follow = follow
        self.defaults = defaults or Defaults()
        # Takes note that this connection holds a session no more; without it, it holds none.
        self.release = release
        self.limits = limits
        # A visitor may send less than a person.
        self.protocol = uamp.Connection("server", limits, authenticated=not principal.is_anonymous)
        self.sessions: dict[str, AttachedSession] = {}
        self.closed_with: int | None = None
        # Whether nothing more is sent (runner.process.Connection).
        self.has_ended = False
        self.presence_id: str | None = None
        self.on_error: Callable[[uamp.RemoteProtocolError], None] | None = None
        # The last limit that a request of this connection was counted against.
        self.quota: rates.Quota | None = None
        # How a transport without a conversation has a turn paid (runner.request.TurnRequest.pay).
        self.pay: Any = None
        # Whether a response.create of this connection led to a response.
        self.has_begun = False
        # Whether the client sends response.create itself: then nothing begins without it.
        self.asks_itself = False
        # A batch is over when nothing goes on by itself any more.
        self.ends_when_idle = False
        # Responses of its sessions that go on by themselves in other processes.
        self.elsewhere: set[str] = set()
        # What a client of a batch was asked for: the rows say it too, where it ran elsewhere.
        self._asked: set[tuple[str, str]] = set()
        self._source = source
        self._pending = ConnectionBytes()
        self._items: deque[Outgoing | Work] = deque()
        self._ready: list[Outgoing] = []
        # The bytes of the frames in the two, and of the batch that is being sent.
        self._queued_bytes = 0
        self._ready_bytes = 0
        self._sending_bytes = 0
        self._has_room = asyncio.Event()
        self._reading = False
        self._woken = asyncio.Event()
        self._refusal: asyncio.TimerHandle | None = None
        self._behind = False

    # --- Sessions ---

    def attach(self, session: OpenSession, *, cursor: int) -> AttachedSession:
        """Put a session on this connection, whose log was read up to `cursor`."""
        session_id = session.wire_id

        def emit(text: str, seq: int | None) -> None:
            outgoing = Outgoing(uamp.stamp_session(text, session_id), session_id, seq)
            self._ready.append(outgoing)
            self._ready_bytes += _size_of(outgoing)

        def later(work: Work) -> None:
            if session_id in self.sessions:
                self._items.appendleft(work)
                self._queued_bytes += _size_of(work)

        subscription = ChatSubscription(
            chat_id=session.chat_id,
            cursor=cursor,
            source=self._source,
            emit=emit,
            chat_scoped=session.chat_scoped,
            user_id=session.principal.user_id,
            on_left=partial(
                self._dismiss_session,
                session_id,
                ErrorCode.CHAT_NOT_FOUND,
                "You are not in this chat any more.",
            ),
            later=later,
            is_full=lambda: self._ready_bytes >= BATCH_BYTES,
        )
        attached = self.sessions[session_id] = AttachedSession(
            session=session,
            subscription=subscription,
            listener=RunListener(self, subscription),
            inputs=PendingInputs(self._pending, most=self.limits.pending_inputs),
        )
        return attached

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
            for run in list(attached.listener.runs.values()):
                run.leave(attached.listener)
        return attached

    def followers_of(self, chat_id: str) -> list[AttachedSession]:
        """Return the sessions of this connection that follow a chat."""
        return [a for a in self.sessions.values() if a.session.chat_id == chat_id]

    def cursors(self) -> dict[str, int]:
        """Return the chats that are followed and how far (runner.Follower)."""
        found: dict[str, int] = {}
        for attached in self.sessions.values():
            chat_id = attached.session.chat_id
            found[chat_id] = min(
                attached.subscription.cursor, found.get(chat_id, attached.subscription.cursor)
            )
        return found

    def nudge(self, chat_id: str) -> None:
        """Read the log of a chat: a message about it was lost (runner.Follower)."""
        self.put(partial(self.hear, chat_id))
        for attached in self.followers_of(chat_id):
            self.put(attached.subscription.catch_up)
            self.put(attached.subscription.repair)

    async def hear(self, chat_id: str) -> None:
        """Enter a chat's group; while the layer is away the tick finds what it would say."""
        try:
            await self.follow(chat_id)
        except Exception:
            # Whatever a layer raises: what happens in the chat is in its log.
            logger.warning("the group of chat %s is not heard", chat_id, exc_info=True)

    @property
    def held_by(self) -> str:
        """The id under which its sessions are active; none where it does not stay with them."""
        return "" if self.release is None else self.origin

    @property
    def session_ids(self) -> list[str]:
        """The rows of the sessions on this connection (runner.Follower)."""
        return [attached.session.id for attached in self.sessions.values()]

    def principals(self) -> set[Principal]:
        """Return who acts on this connection (runner.Follower)."""
        return {self.principal, *(a.session.principal for a in self.sessions.values())}

    def dismiss(self, principal: Principal) -> None:
        """Let somebody act no more: their sessions end here, and with them their connection."""
        for session_id, attached in list(self.sessions.items()):
            if attached.session.principal == principal:
                self._dismiss_session(
                    session_id,
                    ErrorCode.UNAUTHORIZED,
                    "You are signed out, or the token was revoked. Sign in again.",
                )
        if self.principal == principal:
            self.close(CLOSE_UNAUTHORIZED)

    def end_session(self, row_id: str) -> None:
        """Tell the client that a session was ended elsewhere (UAMP §5.3)."""
        for wire_id, attached in list(self.sessions.items()):
            if attached.session.id == row_id:
                self.detach(wire_id)
                self.reply(ev.SessionEnd(session_id=wire_id, reason="ended"), session_id=wire_id)

    def watch_tokens(self, now: float) -> None:
        """Warn of tokens that expire, and end the sessions of those that did (UAMP §10.3).

        `now` is Unix seconds. Between the two a session may still be given a new token.
        """
        for session_id, attached in list(self.sessions.items()):
            expires_at = attached.session.principal.expires_at
            if expires_at is None:
                continue
            left = expires_at.timestamp() - now
            if left < -TOKEN_GRACE_SECONDS:
                self._dismiss_session(session_id, ErrorCode.TOKEN_EXPIRED, "The token expired.")
            elif 0 < left < TOKEN_GRACE_SECONDS and attached.warned_of != expires_at:
                attached.warned_of = expires_at
                self._tell_error(
                    session_id,
                    ErrorCode.TOKEN_EXPIRING,
                    "The token of this session expires within a minute. Send session.update.",
                )

    def _dismiss_session(self, session_id: str, code: ErrorCode, message: str) -> None:
        self._tell_error(session_id, code, message)
        attached = self.detach(session_id)
        if attached is not None and self.release is not None:
            self.release(attached.session.id)
        self.protocol.detach(session_id)

    def _tell_error(self, session_id: str, code: ErrorCode, message: str) -> None:
        error = RemoteProtocolError(code, message, session_id=session_id)
        self.reply(error.to_event(), session_id=session_id)

    # --- What waits for the client ---

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
        """Send a frame that is ready."""
        self._queue(Outgoing(text, session_id))
        if self.owed_bytes > 2 * settings.UAMP_OWED_BYTES:
            # Answers cannot be read again. A socket is not read that far; this is a stream whose
            # client sends by other requests and does not read it.
            logger.info("%s does not read its answers; disconnected", self.principal.counted_as)
            self._items.clear()
            self._queued_bytes = 0
            self.closed_with = CLOSE_TRY_AGAIN_LATER
        self.wake()

    def _queue(self, item: Outgoing | Work) -> None:
        self._items.append(item)
        self._queued_bytes += _size_of(item)

    @property
    def owed_bytes(self) -> int:
        """The memory of all that waits for this client, in bytes."""
        return self._queued_bytes + self._ready_bytes + self._sending_bytes

    async def room(self) -> None:
        """Wait while the client is owed too much, so that its next event is not read before."""
        while self.owed_bytes > settings.UAMP_OWED_BYTES and self.closed_with is None:
            self._has_room.clear()
            await self._has_room.wait()

    def abandon(self) -> None:
        """Owe the client nothing more: its connection is gone."""
        self.has_ended = True
        self._items.clear()
        self._ready.clear()
        self._queued_bytes = self._ready_bytes = self._sending_bytes = 0
        self._has_room.set()

    def take_replies(self) -> list[Outgoing]:
        """Return the answers that wait, for an HTTP exchange that ends with them."""
        replies = [item for item in self._items if isinstance(item, Outgoing)]
        self._items.clear()
        self._queued_bytes = 0
        return replies

    def put(self, work: Work) -> None:
        """Let a subscription do something in its turn, before what comes later."""
        is_long = len(self._items) >= QUEUE_ITEMS or self.owed_bytes > settings.UAMP_OWED_BYTES
        if is_long and not self._behind:
            self._fall_behind()
        if not self._behind:
            self._queue(work)
        self.wake()

    def _fall_behind(self) -> None:
        """Keep the replies that wait; what subscriptions would say they read again."""
        self._items = deque(i for i in self._items if isinstance(i, Outgoing))
        self._queued_bytes = sum(map(_size_of, self._items))
        self._behind = True

    def close(self, code: int) -> None:
        """End the connection with a WebSocket close code, after what waits."""
        self.closed_with = code
        self.wake()

    def close_if_silent(self, code: int) -> None:
        """Close a socket without a session soon, unless its client says something before.

        A client that waits for `session.created` would otherwise wait for its own timeout. A client
        that opens several sessions goes on with the next one (UAMP §10).
        """
        if self.transport != "websocket" or self.sessions:
            return
        loop = asyncio.get_running_loop()
        self._refusal = loop.call_later(REFUSED_SECONDS, self.close, code)

    def spoke(self) -> None:
        """Take note that the client sent a frame."""
        if self._refusal is not None:
            self._refusal.cancel()
            self._refusal = None

    def wake(self) -> None:
        """Let the pump look again for what it has to do."""
        self._woken.set()

    def end_when_idle(self) -> None:
        """End the connection when no response goes on by itself any more."""
        self.ends_when_idle = True
        self.wake()

    @property
    def is_idle(self) -> bool:
        """Whether a subscription may say something at once, without overtaking anybody."""
        return not (self._items or self._reading or self._behind or self._is_batch_full)

    @property
    def _is_batch_full(self) -> bool:
        return len(self._ready) >= BATCH_FRAMES or self._ready_bytes >= BATCH_BYTES

    async def frames(self) -> AsyncIterator[Outgoing]:
        """Yield frames in order until the connection is closed."""
        while (batch := await self.batch()) is not None:
            for outgoing in batch:
                yield outgoing

    async def batch(self) -> list[Outgoing] | None:
        """Wait for the next frames, in order; None when the connection is closed."""
        self._sending_bytes = 0
        self._has_room.set()
        while True:
            while self._items and not self._is_batch_full:
                item = self._items.popleft()
                size = _size_of(item)
                self._queued_bytes -= size
                if isinstance(item, Outgoing):
                    self._ready.append(item)
                    self._ready_bytes += size
                elif (reading := item()) is not None:
                    await self._read(reading)
            if self._ready:
                ready, self._ready = self._ready, []
                self._sending_bytes, self._ready_bytes = self._ready_bytes, 0
                return ready
            if self._behind:
                self._catch_up_all()
            elif self.closed_with is not None or (self.ends_when_idle and not self.is_busy()):
                self.has_ended = True
                return None
            else:
                self._woken.clear()
                await self._woken.wait()

    async def _read(self, reading: Coroutine[Any, Any, None]) -> None:
        self._reading = True
        try:
            await reading
        except (OperationalError, InterfaceError):
            logger.warning("what a client missed cannot be read now", exc_info=True)
            self._fall_behind()
            await asyncio.sleep(READ_AGAIN_SECONDS)
        finally:
            self._reading = False

    def _catch_up_all(self) -> None:
        self._behind = False
        for attached in self.sessions.values():
            self._queue(attached.subscription.catch_up)
            self._queue(attached.subscription.catch_up_running)

    def is_busy(self) -> bool:
        """Return whether a response of this connection goes on by itself."""
        return bool(self.elsewhere) or any(
            not run.waits_for_client
            for attached in self.sessions.values()
            for run in attached.listener.runs.values()
        )

    def ask_once(self, text: str) -> bool:
        """Return whether a frame asks the client for something that it was not asked for before."""
        asked = msgspec.json.decode(text, type=_Asked)
        key = (asked.type, asked.call_id or asked.response_id)
        is_new = key not in self._asked
        self._asked.add(key)
        return is_new

    # --- What the channel layer says ---

    def take_layer_message(self, message: dict[str, Any]) -> None:
        """Hand a message of a chat's group to the sessions that follow the chat."""
        for attached in self.followers_of(message["chat"]):
            subscription, kind = attached.subscription, message["type"]
            if kind == "chat.event":
                fields = (message[name] for name in ("seq", "event", "response", "frame"))
                self.put(partial(subscription.event, *fields))
                if message["event"] in TERMINAL:
                    self.elsewhere.discard(message["response"])
            elif kind == "chat.delta":
                fields = (message[name] for name in ("response", "offset", "text"))
                self.put(partial(subscription.text, *fields))
            elif kind == "chat.text":
                self.put(partial(subscription.replace, message["response"], message["text"]))
            elif self._is_for(attached, message) and self._is_news(message["frame"]):
                signal = partial(subscription.signal, before_end=message["before_end"])
                self.put(partial(signal, message["frame"], message["response"]))

    def _is_news(self, text: str) -> bool:
        return not (self.elsewhere and text.startswith(_ASKING)) or self.ask_once(text)

    def _is_for(self, attached: AttachedSession, signal: dict[str, Any]) -> bool:
        """Leave out what its runner told this session itself, and what is about its person."""
        user_id = attached.session.principal.user_id
        was_told = signal["origin"] == self.origin and attached.listener.was_told(
            signal["response"]
        )
        is_theirs = signal["user"] is not None and signal["user"] == user_id
        is_to = signal["to"] in {None, user_id}
        is_to &= signal["session"] in {None, attached.session.id}
        return is_to and not was_told and not is_theirs


def _size_of(item: Outgoing | Work) -> int:
    """Return the memory of an item of the queue: its own, and that of its text."""
    if isinstance(item, Outgoing):
        return ITEM_BYTES + item.text.__sizeof__()
    texts = item.args if isinstance(item, partial) else ()
    return ITEM_BYTES + sum(text.__sizeof__() for text in texts if isinstance(text, str))
