"""An open chat, or a private session with an agent: ask, send, watch, read (docs/client.md)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from uamp.client.errors import ClientError, PaymentRequiredError, TimedOutError
from uamp.client.records import StoredContent, StoredMessage
from uamp.client.spending import payment_by_balance
from uamp.client.tools import result_text
from uamp.client.turn import AskedTurn
from uamp.events import (
    InputAudio,
    InputFile,
    InputImage,
    InputText,
    PaymentRequired,
    ResponseCreate,
    ToolApprovalRequired,
    ToolCall,
)
from uamp.types.content import IMAGE_FORMATS, MediaUrl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from uamp.client.api import ServerApi
    from uamp.client.connection import ServerConnection
    from uamp.client.consent import Consent
    from uamp.client.exports import ExportSummary
    from uamp.client.state.requests import ClientRequest
    from uamp.client.state.session import ClientSession
    from uamp.client.state.turns import TurnState
    from uamp.client.tools import ClientTool
    from uamp.events import ChatMessage, InputEvent
    from uamp.events.base import Event

logger = logging.getLogger(__name__)

_UNREAD_EVENTS = 10_000
_TOOL_SECONDS = 300.0
_LONG_SECONDS = 3600.0

FileOrPath = str | Path | StoredContent
"""A local file, which is uploaded, or one that the server already has."""


class OpenChat:
    """A session of a client. Several tasks may call its methods at once."""

    def __init__(
        self,
        api: ServerApi,
        connection: ServerConnection,
        session: ClientSession,
        *,
        consent: Consent,
        tools: Sequence[ClientTool],
        answer_seconds: float,
    ) -> None:
        self._api = api
        self._consent = consent
        self._answer_seconds = answer_seconds
        self._connection = connection
        self._session = session
        self._tools = {tool.name: tool for tool in tools}
        self._readers: list[deque[Event]] = []
        self.on_close: Callable[[], None] = lambda: None

    @property
    def id(self) -> str:
        """The id of the chat, or of the private chat of a private session."""
        return self._session.chat or ""

    @property
    def session_id(self) -> str:
        """The id of the session on the wire."""
        return self._session.session_id or ""

    # --- Writing ---

    def ask(
        self,
        text: str,
        *,
        files: Sequence[FileOrPath] = (),
        reply_to: str | None = None,
        thread: str | None = None,
        queue: bool = False,
        seconds: float | None = None,
    ) -> AskedTurn:
        """Send a message and follow its answers.

        ``reply_to`` is the id of the message that it replies to, ``thread`` that of the message
        whose thread it belongs to. With ``queue`` it is sent when the running answers have ended.
        ``seconds`` is the longest time without an event (by default the client's
        ``answer_seconds``).
        """

        async def start() -> TurnState:
            attachments = [await self._upload(file) for file in files]
            inputs: list[InputEvent] = [InputText(text=text)] if text or not attachments else []
            inputs += [_input_of(file) for file in attachments]
            inputs[0] = msgspec.structs.replace(inputs[0], reply_to=reply_to, thread=thread)
            turn = self._session.ask(inputs, ResponseCreate(queue=queue))
            self._connection.changed()
            return turn

        return AskedTurn(
            self._connection,
            self._session,
            start,
            seconds=self._answer_seconds if seconds is None else seconds,
        )

    async def send(
        self,
        text: str,
        *,
        files: Sequence[FileOrPath] = (),
        reply_to: str | None = None,
        thread: str | None = None,
    ) -> ChatMessage | None:
        """Send a message and return it as stored, without waiting for answers."""
        return await self.ask(text, files=files, reply_to=reply_to, thread=thread).stored()

    async def cancel(self, response_id: str) -> None:
        """Cancel an answer that is running in the chat."""
        self._session.cancel(response_id)
        self._connection.changed()

    async def _upload(self, file: FileOrPath) -> StoredContent:
        return file if isinstance(file, StoredContent) else await self._api.upload(file)

    async def close(self) -> None:
        """End the session; running answers continue on the server."""
        self._session.end()
        self._connection.changed()
        await asyncio.sleep(0)
        self.on_close()

    # --- Reading ---

    def events(self, *, seconds: float | None = None) -> AsyncIterator[Event]:
        """Iterate over every event of the session from now on, each durable event once.

        ``seconds`` limits the wait for the next event (TimedOutError); without it, only a lost
        connection ends the wait. The iterator raises ClientError if the caller reads events too
        slowly.
        """
        unread: deque[Event] = deque(maxlen=_UNREAD_EVENTS)
        self._readers.append(unread)
        return self._read_events(unread, seconds)

    async def _read_events(
        self, unread: deque[Event], seconds: float | None
    ) -> AsyncIterator[Event]:
        try:
            while True:
                while unread:
                    if len(unread) >= _UNREAD_EVENTS:
                        raise ClientError("Events arrive faster than they are read.", code="lag")
                    yield unread.popleft()
                if self._session.error is not None:
                    raise self._session.error
                came = await self._connection.wait(_LONG_SECONDS if seconds is None else seconds)
                if not came and seconds is not None:
                    raise TimedOutError(f"No event arrived for {seconds:g} seconds.")
        finally:
            self._readers.remove(unread)

    def history(
        self, *, limit: int | None = None, newest_first: bool = False
    ) -> AsyncIterator[StoredMessage]:
        """Yield the messages of the chat over REST, oldest first unless ``newest_first``."""
        return self._api.history(self.id, limit=limit, newest_first=newest_first)

    async def export(self, path: str | Path) -> ExportSummary:
        """Export the chat to an NDJSON file and check it, as ``ServerApi.export``."""
        return await self._api.export(self.id, path)

    # --- Called by the connection ---

    def take_event(self, event: Event) -> None:
        """Pass an event to its readers. Called by the connection."""
        for unread in self._readers:
            unread.append(event)

    async def take_request(self, request: ClientRequest) -> None:
        """Handle a request of the server. Called by the connection."""
        match request:
            case ToolCall():
                await self._run_tool(request)
            case PaymentRequired():
                await self._pay(request)
            case ToolApprovalRequired():
                await self._approve(request)
        self._connection.changed()

    async def _run_tool(self, call: ToolCall) -> None:
        result, is_error = await self._tool_result(call)
        self._session.finish_tool(call.call_id, result, is_error=is_error)

    async def _tool_result(self, call: ToolCall) -> tuple[str, bool]:
        tool = self._tools.get(call.name)
        if tool is None:
            return f"This client has no tool {call.name}.", True
        try:
            arguments = tool.bind(call.arguments)
        except ValueError as error:
            return str(error), True
        try:
            async with asyncio.timeout(_TOOL_SECONDS):
                if inspect.iscoroutinefunction(tool.function):
                    value = await tool.function(**arguments)
                else:
                    value = await asyncio.to_thread(tool.function, **arguments)
                return result_text(value), False
        except TimeoutError:
            return f"{call.name} took longer than {_TOOL_SECONDS:g} seconds.", True
        except Exception as error:
            # The model receives the tool's exception, and may call it again differently.
            logger.warning("the tool %s failed", call.name, exc_info=True)
            return str(error) or type(error).__name__, True

    async def _pay(self, required: PaymentRequired) -> None:
        requirements = required.requirements
        payment = payment_by_balance(required)
        refusal = PaymentRequiredError(requirements.amount, requirements.currency)
        if payment is None or not await self._consent.agrees(required):
            self._session.decline(required, refusal)
        else:
            self._session.pay(required, payment)

    async def _approve(self, call: ToolApprovalRequired) -> None:
        approved = await self._consent.approves(call)
        if approved is not None:
            self._session.decide(call, approved=approved)


def _input_of(file: StoredContent) -> InputEvent:
    medium = MediaUrl(url=file.url)
    kind, _, name = file.mime_type.partition("/")
    if kind == "image" and name in IMAGE_FORMATS:
        return InputImage(image=medium, content_id=file.content_id)
    if kind == "audio":
        return InputAudio(
            audio=medium,
            format="mp3" if name == "mpeg" else name,
            is_final=True,
            content_id=file.content_id,
        )
    return InputFile(
        file=medium,
        filename=file.filename,
        mime_type=file.mime_type,
        content_id=file.content_id,
    )
