"""The event streams of an ACP connection over HTTP: its own, and one per session."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.utils import timezone

from gateway_app.acp import read, write
from gateway_app.acp.prompts import ENDS, Prompt
from gateway_app.backend.demands import answer_of
from gateway_app.http import KEEP_ALIVE, data_frame
from gateway_app.types.lost_sessions import lost_session
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from gateway_app.backend.streamed_connection import EventStream, PendingAnswer
    from uamp.events import Event

# A request that has begun nothing after this time was lost together with its process.
LOST_SECONDS: Final = 60
SILENT_REMEMBERED: Final = 256


class AcpStream:
    """One stream: the updates of a session's responses, and the answers that are owed.

    The stream that claims a request sends its answer. Responses that ended before the stream opened
    are sent whole; of running ones, it sends the text so far and the rest. Used by the request's
    task only.
    """

    def __init__(self, stream: EventStream, session_id: str) -> None:
        self._stream = stream
        self._session_id = session_id
        self._has_closed = False
        self._prompts: dict[str, Prompt] = {}
        # Responses whose events are not sent any more: ended ones, and those of other members.
        self._silent: OrderedDict[str, None] = OrderedDict()

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield the stream until the connection or the session ends."""
        yield b": stream open\n\n"
        async for message in self._owed():
            yield data_frame(message)
        if self._is_over():
            return
        async for event in self._stream.events():
            if event is None:
                yield KEEP_ALIVE
                async for message in self._owed():
                    yield data_frame(message)
            else:
                for message in await self._messages(event):
                    yield data_frame(message)
            if self._is_over():
                return

    def _is_over(self) -> bool:
        return self._has_closed

    # --- Events of the session ---

    async def _messages(self, event: Event) -> list[dict[str, Any]]:
        if (lost := lost_session(event)) is not None:
            return await self._report_lost(lost)
        response_id = await answer_of(event)
        if not response_id or response_id in self._silent:
            return []
        prompt = self._prompts.get(response_id)
        if prompt is None:
            if not await self._stream.has_requested(response_id):
                self._silence(response_id)
                return []
            prompt = self._prompts[response_id] = self._prompt(response_id)
        if isinstance(event, (ev.PaymentRequired, *ENDS)):
            await self._take_request(prompt)
        messages = list(prompt.feed(event))
        prompt.request_id = msgspec.UNSET
        if isinstance(event, ENDS):
            self._silence(response_id)
        return messages

    async def _take_request(self, prompt: Prompt) -> None:
        """Have the prompt answer its request, unless another stream has claimed it."""
        for owed in await self._stream.owed() or ():
            if owed.response_id == prompt.response_id and not owed.has_answer:
                if await self._stream.take(owed):
                    prompt.answer_to(_id_of(owed))
                return

    def _prompt(self, response_id: str) -> Prompt:
        return Prompt(self._session_id, response_id=response_id, link=self._stream.link)

    def _silence(self, response_id: str) -> None:
        self._prompts.pop(response_id, None)
        self._silent[response_id] = None
        if len(self._silent) > SILENT_REMEMBERED:
            self._silent.popitem(last=False)

    async def _report_lost(self, error: RemoteProtocolError) -> list[dict[str, Any]]:
        """Return the messages that report a lost session, and end its stream."""
        self._has_closed = True
        refused = read.RpcError.of(error).body()
        messages = [message async for message in self._owed()]
        owing = await self._stream.owed() or ()
        request_ids = [_id_of(owed) for owed in owing if await self._stream.take(owed)]
        messages += [write.failure(request_id, refused) for request_id in request_ids]
        return [*messages, write.session_lost(self._session_id, refused)]

    # --- Answers ---

    async def _owed(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the answers that are ready, and end the stream if the connection was closed."""
        waiting = await self._stream.owed()
        if waiting is None:
            self._has_closed = True
            return
        for owed in waiting:
            for message in await self._answers(owed):
                yield message

    async def _answers(self, owed: PendingAnswer) -> list[dict[str, Any]]:
        if owed.has_answer:
            answer = await self._stream.take_answer(owed)
            return [msgspec.json.decode(line) for line in (answer or "").splitlines()]
        if not owed.response_id:
            waited = (timezone.now() - owed.created_at).total_seconds()
            if waited < LOST_SECONDS or not await self._stream.take(owed):
                return []
            lost = RemoteProtocolError(
                ErrorCode.INTERRUPTED, "The server lost the request. Send it again."
            )
            return [write.failure(_id_of(owed), read.RpcError.of(lost).body())]
        if owed.response_id in self._prompts:
            # The session's events will bring its end.
            return []
        return await self._whole(owed)

    async def _whole(self, owed: PendingAnswer) -> list[dict[str, Any]]:
        """Return a response that ended before this stream read its events."""
        events = await self._stream.ended(owed.response_id)
        if not events or not await self._stream.take(owed):
            return []
        prompt = self._prompt(owed.response_id)
        prompt.answer_to(_id_of(owed))
        if owed.response_id in self._silent:
            # The updates were sent before the request arrived.
            events = events[-1:]
        self._silence(owed.response_id)
        return list(_fed(prompt, events))


def _fed(prompt: Prompt, events: list[Event]) -> Iterator[dict[str, Any]]:
    for event in events:
        yield from prompt.feed(event)


def _id_of(owed: PendingAnswer) -> Any:
    return msgspec.json.decode(owed.request_id)
