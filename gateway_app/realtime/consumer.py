"""OpenAI's Realtime API on a WebSocket.

The socket holds the conversation: each response receives its items as messages, as in Chat
Completions. A response that must be paid for waits for `payment.submit`.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import msgspec
from django.conf import settings

import uamp
from gateway_app.backend.socket import WEIGHED_BYTES, ForeignDialect, SocketApplication
from gateway_app.realtime import read, write
from gateway_app.realtime.conversation import RealtimeConversation, check_context, check_results
from gateway_app.realtime.item_sounds import ItemSounds
from gateway_app.realtime.items import RealtimeItem, check_item, messages_of, sounds_of
from gateway_app.realtime.session_events import (
    EXTRA,
    error_event,
    extra_event,
    is_spoken,
    item_created,
    limits_event,
    session_event,
)
from gateway_app.realtime.speech_turns import SpeechTurns, sound_item
from gateway_app.types.lost_sessions import lost_session
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.errors.http_status import close_code

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from gateway_app.realtime.audio_fields import SpeechSettings
    from uamp.events import Event

    Take: TypeAlias = Callable[[Any], Awaitable[None]]

_encoder: Final = msgspec.json.Encoder()
_BETA_HEADER: Final = "realtime=v1"
_BETA_SUBPROTOCOL: Final = "openai-beta.realtime-v1"
_SUBPROTOCOL: Final = "realtime"
_MODEL_CHARS: Final = 256
_INTERRUPTED_SECONDS: Final = 10.0
# Clients append audio in pieces of 20 ms.
_MIN_WEIGHT: Final = 0.1


class RealtimeDialect(ForeignDialect):
    """One socket: a session, its conversation, and one response at a time."""

    transport: ClassVar[str] = "realtime"
    takes_client_secrets: ClassVar[bool] = True

    def prepare(self) -> None:
        """Choose the dialect, and the agent that the path or `?model=` names."""
        self.check_host()
        handshake, defaults = self.handshake, self.connection.defaults
        model = handshake.query.get("model") or None
        is_beta = (
            _BETA_HEADER in handshake.headers.get("openai-beta", "")
            or _BETA_SUBPROTOCOL in handshake.dialects
        )
        self._is_ga = model is not None and not is_beta
        self._model = model if defaults.agent else None
        defaults.agent = defaults.agent or model
        # The conversation belongs to the socket, not to a chat.
        defaults.chat = None
        self._session_id = ""
        self._session = read.SessionFields()
        self._speaks = False
        self._turns = SpeechTurns(self, limit=settings.UAMP_REALTIME_SOUND_BYTES)
        if defaults.bound is not None:
            self._bind(defaults.bound.agent, defaults.bound.config)
        self._conversation = RealtimeConversation()
        self._sounds = ItemSounds(
            self, self._conversation, self._turns, limit=settings.UAMP_REALTIME_SOUND_BYTES
        )
        self._writer: write.RealtimeWriter | None = None
        self._has_ended = asyncio.Event()
        self._is_interrupted = False
        self._takes: dict[type[read.RealtimeFrame], Take] = {
            read.SessionUpdateFrame: self._update_session,
            read.ItemCreateFrame: self._create_item,
            read.ItemFrame: self._find_item,
            read.ItemTruncateFrame: self._truncate_item,
            read.ResponseCreateFrame: self._create_response,
            read.ResponseCancelFrame: self._cancel_response,
            read.PaymentFrame: self._submit_payment,
            read.ApprovalFrame: self._approve_call,
            read.AudioAppendFrame: self._turns.append,
            read.RealtimeFrame: self._turns.take,
        }

    def _bind(self, agent: str, config: Mapping[str, Any]) -> None:
        """Apply the configuration of the client secret's issuer, which `?model=` cannot change."""
        self._session = msgspec.convert(config["session"], read.SessionFields)
        self._is_ga = self._is_ga or config["is_ga"]
        if self._model not in {None, agent, config["model"]}:
            self.refuse_handshake()
        self._model = config["model"]

    @property
    def subprotocol(self) -> str | None:
        """The subprotocol that browsers offer beside their key."""
        return _SUBPROTOCOL if _SUBPROTOCOL in self.handshake.dialects else None

    async def opened(self) -> None:
        """Open a session of the agent; if it is refused, close the socket with an error."""
        agent = self.connection.defaults.agent
        if agent is None or max(len(agent), len(self._model or "")) > _MODEL_CHARS:
            text = (
                f"Specify an agent in the path or in ?model=, in at most {_MODEL_CHARS} characters."
            )
            self._refuse_socket(RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, text))
            return
        try:
            config = self._session.patch().apply_to(uamp.SessionConfig())
            self._session_id = await self.open_session(ev.SessionCreate(session=config))
            speech = await self.speech()
            self._turns.takes, self._speaks = speech.takes, bool(speech.speaks)
            self._turns.change(self._turns.settings.after(self._session))
            if self._speaks:
                await self._send(ev.SessionUpdate(session=self._session.patch(self._speech)))
        except RemoteProtocolError as error:
            self._refuse_socket(error)
        else:
            self._show_session("session.created")

    def _refuse_socket(self, error: RemoteProtocolError) -> None:
        self.show(error_event(error, None))
        self.connection.close(close_code(error.code))

    # --- Client to server ---

    async def receive(self, frame: str | bytes) -> None:
        """Process an event; a refused one is answered with an error and the socket stays open."""
        event_id: str | None = None
        # About a second of PCM in base64 counts as one event.
        size = len(frame) / WEIGHED_BYTES
        self._turns.turns = 0
        try:
            event = read.read_frame(frame)
            event_id = event.event_id
            await self._takes[type(event)](event)
            is_sound = isinstance(event, read.AudioAppendFrame)
            self.weight = max(size, self._turns.turns, _MIN_WEIGHT if is_sound else 1)
        except RemoteProtocolError as error:
            self.weight = max(size, self._turns.turns, 1)
            self.show(error_event(error, event_id or error.event_id))

    async def _update_session(self, frame: read.SessionUpdateFrame) -> None:
        session = frame.session.merged_into(self._session, speaks=self._speaks)
        self._turns.change(self._turns.settings.after(frame.session))
        patch = frame.session.patch(self._speech if self._speaks else None)
        if patch != uamp.SessionPatch():
            await self._send(ev.SessionUpdate(session=patch))
        self._session = session
        self._is_ga = self._is_ga or frame.session.type is not None
        self._show_session("session.updated")

    async def _create_item(self, frame: read.ItemCreateFrame) -> None:
        check_item(frame.item, "item", takes_sound=bool(self._turns.takes))
        item = self._sounds.with_files(_named(frame.item), "item")
        previous = self._conversation.take(item, frame.previous_item_id)
        self.show(*item_created(item, previous, is_ga=self._is_ga))

    async def _find_item(self, frame: read.ItemFrame) -> None:
        await self._update_items()
        item = self._conversation.item(frame.item_id)
        if frame.type == "conversation.item.delete":
            self._conversation.delete(frame.item_id)
            self.show({"type": "conversation.item.deleted", "item_id": frame.item_id})
            return
        body = item.body(is_ga=self._is_ga)
        self.show({"type": "conversation.item.retrieved", "item": body})

    async def _truncate_item(self, frame: read.ItemTruncateFrame) -> None:
        self._conversation.truncate(frame.item_id, frame.audio_end_ms)
        place = {"item_id": frame.item_id, "content_index": frame.content_index}
        kind = "conversation.item.truncated"
        self.show({"type": kind, **place, "audio_end_ms": frame.audio_end_ms})

    # --- Sound ---

    @property
    def _speech(self) -> SpeechSettings:
        return self._turns.settings

    def add_sound(self, item_id: str, samples: bytes, name: str) -> str | None:
        """See SpeechPort."""
        item = sound_item(item_id, self.sound_file(samples, name))
        self._sounds.check(item, "input_audio_buffer", of_buffer=len(samples))
        previous = self._conversation.take(item, None)
        committed = {"type": "input_audio_buffer.committed"}
        self.show({**committed, "previous_item_id": previous, "item_id": item_id})
        self.show(*item_created(item, previous, is_ga=self._is_ga))
        return previous

    async def respond(self) -> None:
        """See SpeechPort."""
        if self._writer is not None and self._is_interrupted:
            # The interrupting speech may end before the interrupted response does.
            with suppress(TimeoutError):
                async with asyncio.timeout(_INTERRUPTED_SECONDS):
                    await self._has_ended.wait()
        await self._create_response(read.ResponseCreateFrame(type="response.create"))

    async def interrupt(self) -> None:
        """See SpeechPort."""
        if self._writer is not None and self._writer.response_id:
            self._is_interrupted = True
            await self._send(ev.ResponseCancel(response_id=self._writer.response_id))

    async def _create_response(self, frame: read.ResponseCreateFrame) -> None:
        if self._writer is not None:
            raise RemoteProtocolError(
                ErrorCode.INVALID_EVENT,
                "A response is being written. Wait for response.done, or send response.cancel.",
            )
        fields = frame.response or read.ResponseFields()
        if fields.conversation == "auto":
            self._conversation.check_room("response.conversation")
        fields.check("response", speaks=self._speaks)
        await self._update_items()
        context = self._context(fields)
        check_context(context, "response.input")
        async with self._sounds.stored(context) as stored:
            response_id = await self._begin(fields, stored)
        if stored and stored[-1].role == "user":
            self._conversation.note_question(stored[-1].id, response_id)

    async def _begin(self, fields: read.ResponseFields, stored: Sequence[RealtimeItem]) -> str:
        """Begin the response to items and return its id; raises RemoteProtocolError."""
        messages = messages_of(stored)
        modality_fields = self._session if fields.requested_modalities is None else fields
        speaks = self._speaks and is_spoken(modality_fields)
        config = fields.config(self._session, messages, self._model, is_spoken=speaks)
        self._has_ended.clear()
        self._is_interrupted = False
        writer = self._writer = write.RealtimeWriter(
            is_ga=self._is_ga,
            fields=fields,
            conversation=self._conversation if fields.conversation == "auto" else None,
            link=self.link_of(self._session_id),
            is_spoken=speaks,
            sounds=sounds_of(stored),
        )
        try:
            create = ev.ResponseCreate(session_id=self._session_id, response=config)
            writer.response_id = await self.begin(create)
        except RemoteProtocolError:
            self._writer = None
            raise
        return writer.response_id

    async def _update_items(self) -> None:
        """Drop items whose messages were deleted in their chat, and update edited ones."""
        if not (response_ids := self._conversation.response_ids):
            return
        for item_id in self._conversation.update(await self.current_texts(response_ids)):
            self.show({"type": "conversation.item.deleted", "item_id": item_id})

    def _context(self, fields: read.ResponseFields) -> Sequence[RealtimeItem]:
        """Return the items that a response answers; raises RemoteProtocolError."""
        if fields.input is None:
            return self._conversation.items
        items: list[RealtimeItem] = []
        for index, item in enumerate(fields.input):
            place = f"response.input[{index}]"
            if item.type == "item_reference":
                items.append(self._conversation.item(item.id or "", f"{place}.id"))
                continue
            check_item(item, place, takes_sound=bool(self._turns.takes))
            check_results((item,), items, f"{place}.call_id")
            items.append(self._sounds.with_files(item, place))
        return items

    async def _cancel_response(self, frame: read.ResponseCancelFrame) -> None:
        running = "" if self._writer is None else self._writer.response_id
        if not running or frame.response_id not in {None, running}:
            raise RemoteProtocolError(ErrorCode.NOTHING_TO_CANCEL, "No such response is running.")
        await self._send(ev.ResponseCancel(response_id=running))

    async def _submit_payment(self, frame: read.PaymentFrame) -> None:
        if self.connection.defaults.bound is not None and frame.payment.scheme != "token":
            # The secret's holder is a visitor of the page, not the owner of the balance.
            raise RemoteProtocolError(
                ErrorCode.FORBIDDEN,
                "A client secret cannot spend a balance. Pay with a payment token.",
                details={"param": "payment.scheme"},
            )
        submit = ev.PaymentSubmit(payment=frame.payment, response_id=frame.response_id)
        await self._send(submit)

    async def _approve_call(self, frame: read.ApprovalFrame) -> None:
        if self.connection.defaults.bound is not None:
            # The issuer of the secret approves tool calls, and does so elsewhere.
            raise RemoteProtocolError(
                ErrorCode.FORBIDDEN,
                "A client secret cannot allow a tool call. The person who issued it decides.",
                details={"param": "type"},
            )
        approve = ev.ToolApprove(
            call_id=frame.call_id,
            response_id=frame.response_id,
            approved=frame.approved,
            reason=frame.reason,
        )
        await self._send(approve)

    async def _send(self, event: Event) -> None:
        """Send an event in the socket's session."""
        await self.send(msgspec.structs.replace(event, session_id=self._session_id))

    # --- Server to client ---

    def frames(self, event: Event) -> Iterator[str]:
        """Yield the protocol's events for a UAMP event."""
        for message in self._messages(event):
            yield _text(message)

    def _messages(self, event: Event) -> Iterable[dict[str, Any]]:
        if (lost := lost_session(event)) is not None:
            return self._report_lost(lost)
        match event:
            case ev.RateLimit():
                return (limits_event(event, time.time()),)
            case _ if isinstance(event, EXTRA):
                return (extra_event(event),)
            case _:
                return self._written(event)

    def _report_lost(self, error: RemoteProtocolError) -> Iterator[dict[str, Any]]:
        """Report why the session was lost and close the socket, which has no other session."""
        if self._session_id:
            self.connection.close(close_code(error.code))
            yield error_event(error, None)

    def _written(self, event: Event) -> Iterator[dict[str, Any]]:
        writer, response_id = self._writer, getattr(event, "response_id", None)
        if writer is None or response_id is None or response_id != writer.response_id:
            return
        yield from writer.feed(event)
        if writer.has_ended:
            self._writer = None
            self._has_ended.set()

    def _show_session(self, kind: str) -> None:
        model = self._model or self.connection.defaults.agent or ""
        event = session_event(
            kind,
            self._session_id,
            model,
            self._session,
            is_ga=self._is_ga,
            speech=self._speech if self._turns.takes else None,
            speaks=self._speaks,
        )
        self.show(event)

    def show(self, *messages: dict[str, Any]) -> None:
        """See SpeechPort."""
        for message in messages:
            self.connection.send_dialect_frame(_text(message))


def _named(item: RealtimeItem) -> RealtimeItem:
    """Return an item of the client with an id and the status of a complete item."""
    item_id = item.id or f"item_{uuid.uuid4().hex[:24]}"
    return msgspec.structs.replace(item, id=item_id, status="completed")


def _text(message: dict[str, Any]) -> str:
    return _encoder.encode({"event_id": f"event_{uuid.uuid4().hex[:24]}", **message}).decode()


application: Final = SocketApplication(RealtimeDialect)
