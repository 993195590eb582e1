"""A WebSocket of a foreign protocol, acting as a UAMP client."""

from __future__ import annotations

import base64
import contextlib
import uuid
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

import uamp
from chat_app.contents import storage
from chat_app.contents.wave import wave_file
from gateway_app.backend.agents.agent_speech import speech_of
from gateway_app.backend.agents.agent_tools import tools_of
from gateway_app.backend.content_links import content_link
from gateway_app.backend.current_texts import current_texts
from gateway_app.backend.demands import charged_details
from gateway_app.backend.session_reader import SessionReader, own_session
from gateway_app.backend.turn_outcomes import started_response
from sessions_app import database
from sessions_app.access.auth import OriginError
from sessions_app.connection.open_sessions import opened_session
from sessions_app.connection.outgoing_queue import DialectFrame
from sessions_app.connection.rate_limit import check_left
from sessions_app.handlers import table
from sessions_app.handlers.turns.input import cancel_response
from sessions_app.inputs.media import store_media
from sessions_app.process import registry
from sessions_app.transports.followed_response import SERVER_EVENTS
from sessions_app.transports.socket import (
    CLOSE_FORBIDDEN,
    WEIGHED_BYTES,
    HandshakeRefused,
    SocketApplication,
    SocketDialect,
)
from sessions_app.transports.unpaid_turns import refuse_unpaid
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
    from datetime import datetime

    from gateway_app.backend.agents.agent_speech import AgentSpeech
    from gateway_app.backend.agents.agent_tools import AgentTool
    from gateway_app.types.message_origins import CurrentTexts
    from sessions_app.access.auth import Handshake
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.connection.outgoing_queue import Outgoing
    from uamp.events import Event

__all__ = ["WEIGHED_BYTES", "ForeignDialect", "SocketApplication"]

_encoder: Final = msgspec.json.Encoder()


class ForeignDialect(SocketDialect, ABC):
    """A dialect that sends UAMP events for its client and turns server events into frames.

    The socket's task calls `send`, and its pump calls `encode`.
    """

    def __init__(self, connection: ClientConnection, handshake: Handshake) -> None:
        super().__init__(connection, handshake)
        self._refused: list[RemoteProtocolError] = []
        connection.on_error = self._refused.append
        self.prepare()

    def prepare(self) -> None:
        """Set up the dialect before the socket is accepted."""

    def check_host(self) -> None:
        """Refuse a host name that is not served here, since `link` would point elsewhere."""
        try:
            self.handshake.check_host()
        except OriginError:
            self.refuse_handshake()

    def refuse_handshake(self) -> NoReturn:
        """Refuse a socket that its client may not open; called from `prepare`."""
        raise HandshakeRefused(CLOSE_FORBIDDEN)

    def link_in(self, chat_id: str) -> Callable[[str], str]:
        """Return a function that gives temporary addresses to the media of a chat."""
        return partial(
            content_link,
            base_url=f"{self.handshake.base_url}/",
            user_id=self.connection.principal.user_id,
            chat_id=chat_id,
        )

    def link_of(self, session_id: str) -> Callable[[str], str]:
        """Return `link_in` for the chat of an attached session."""
        attached = self.connection.sessions.get(session_id)
        return self.link_in("" if attached is None else attached.session.chat_id)

    async def send(self, event: Event) -> None:
        """Send a client event; raises RemoteProtocolError if it is refused.

        The event's id identifies the errors raised here; `lost_sessions` handles the others. An
        event above `frame_bytes` would close a UAMP socket; here the client may retry with less.
        """
        event_id = event.event_id or f"{self.transport}_{uuid.uuid4().hex}"
        frame = _encoder.encode(msgspec.structs.replace(event, event_id=event_id))
        if self.frame_bytes is not None and len(frame) > self.frame_bytes:
            raise RemoteProtocolError(
                ErrorCode.EVENT_TOO_LARGE,
                f"One turn and its history may have at most {self.frame_bytes} bytes.",
            )
        await table.receive(self.connection, frame)
        if self._refused:
            error = self._refused[0]
            self._refused.clear()
            raise error

    async def begin(self, create: ev.ResponseCreate) -> str:
        """Begin a turn and return its response; raises RemoteProtocolError if none begins.

        Its session's events wait meanwhile, so that the first ones of the response find its id
        known.
        """
        with self.connection.outgoing.held(create.session_id or ""):
            await self.send(create)
            return started_response(self.connection)

    def drop_inputs(self, session_id: str) -> None:
        """Drop the inputs of a refused turn, which must not leak into the next one."""
        if (attached := self.connection.sessions.get(session_id)) is not None:
            attached.inputs.take()

    async def open_session(self, create: ev.SessionCreate) -> str:
        """Open or resume a session and return its id; raises RemoteProtocolError."""
        existing = set(self.connection.sessions)
        await self.send(create)
        return opened_session(self.connection, known_ids=existing).session.wire_id

    def leave_session(self, session_id: str) -> None:
        """Detach a session, whose responses continue without this client."""
        self.connection.detach(session_id)

    def spawn(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Run work in the background; it is cancelled when the process stops."""
        registry.current().spawn(work, name=name)

    async def give_up(
        self, session_id: str, response_id: str, error: RemoteProtocolError, *, cancels: bool
    ) -> RemoteProtocolError:
        """Return the error of an answer that its client leaves, with what was charged of it.

        With `cancels`, the answer is cancelled and its end awaited. Others wait in their chat for a
        person, as over HTTP (`Exchange.give_up`).
        """
        if cancels:
            cancel = ev.ResponseCancel(session_id=session_id, response_id=response_id)
            # It may have ended, or the client have gone.
            with contextlib.suppress(RemoteProtocolError):
                await cancel_response(self.connection, cancel)
        charged = await charged_details(response_id, has_stopped=cancels)
        error.details = {**(error.details or {}), **charged}
        return error

    async def resume_session(
        self, session_id: str, *, after: tuple[str, int] | None = None
    ) -> None:
        """Resume one of the caller's sessions, from now or from an epoch and `seq` of its log.

        Raises RemoteProtocolError unknown_session.
        """
        if after is None:
            session = await own_session(session_id, self.connection.principal, agent=self.agent)
            after = session.epoch, session.last_seq
        epoch, seq = after
        resume = uamp.Resume(session_id=session_id, epoch=epoch, after=seq)
        await self.send(ev.SessionCreate(resume=resume))

    async def speech(self) -> AgentSpeech:
        """Return the sound formats that the agent accepts and speaks."""
        return await speech_of(self.connection.principal, self.connection.defaults.agent)

    def sound_file(self, samples: bytes, name: str) -> str:
        """Encode raw samples of a format as a base64 WAV file."""
        return base64.b64encode(wave_file(samples, name) or b"").decode()

    async def keep_sound(self, audio: str) -> str:
        """Store a base64 WAV file for the caller, only once, and return the content's address.

        Raises RemoteProtocolError if the caller's storage is full.
        """
        item = uamp.AudioContent(audio=audio, format="wav")
        keep = partial(store_media, [item], self.connection.principal, chat_id="", reuse=True)
        asker = self.connection.principal.counted_as
        (content,) = await database.run_long(asker, keep)
        medium = uamp.media_of(content)
        return medium.url if isinstance(medium, uamp.MediaUrl) else audio

    async def discard_sounds(self, addresses: Iterable[str], *, since: datetime) -> None:
        """Delete sounds that `keep_sound` has stored since then and that no message shows."""
        content_ids = filter(None, map(uamp.content_id_of, addresses))
        await database.run(storage.discard, [*content_ids], since=since)

    async def check_rates(self) -> None:
        """Refuse a turn beyond the rate of responses before its sounds are stored.

        Counts nothing. Raises RemoteProtocolError rate_limited.
        """
        await check_left(self.connection.principal, "responses")

    def demand_payments(self) -> None:
        """Refuse unpaid turns, with the x402 requirements in the details."""
        self.connection.pay = refuse_unpaid

    async def current_texts(self, response_ids: Iterable[str]) -> dict[str, CurrentTexts]:
        """Return the current questions and answers of the client's responses."""
        return await current_texts(response_ids, self.connection.principal)

    @property
    def agent(self) -> str | None:
        """The agent named by the path or a header."""
        return self.connection.defaults.agent

    def own_sessions(self, extension: str) -> SessionReader:
        """Return a reader of the caller's sessions over this transport with the path's agent."""
        return SessionReader(
            self.connection.principal,
            transport=self.transport,
            agent=self.agent,
            extension=extension,
        )

    async def tools(self) -> list[AgentTool]:
        """Return the agent's tools; raises RemoteProtocolError agent_not_found."""
        return await tools_of(self.connection.principal, self.agent)

    def is_private(self, session_id: str) -> bool:
        """Return whether the chat of a session holds the responses of that session alone."""
        attached = self.connection.sessions.get(session_id)
        return attached is not None and not attached.session.chat_scoped

    def encode(self, batch: Sequence[Outgoing]) -> Iterator[str]:
        """Yield the frames of a batch."""
        for outgoing in batch:
            if isinstance(outgoing, DialectFrame):
                yield outgoing.text
            else:
                yield from self.frames(SERVER_EVENTS.decode(outgoing.text))

    @abstractmethod
    def frames(self, event: Event) -> Iterable[str]:
        """Yield the protocol's frames of a server event, if the protocol has any for it."""

    def send_json(self, message: dict[str, Any]) -> None:
        """Queue a message of the protocol behind the events sent so far, if none is held back."""
        self.connection.send_dialect_frame(_encoder.encode(message).decode())
