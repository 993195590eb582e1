"""The operations of the Responses API: begin, find, resume and cancel a response."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

import uamp
from gateway_app.openai.errors import refused
from gateway_app.openai_responses.compaction import messages_of_user, opened
from gateway_app.openai_responses.items import InputItem
from gateway_app.openai_responses.output import input_items, request_echo, response_of
from gateway_app.openai_responses.read import turn_of
from gateway_app.openai_responses.tools import ClientTools
from gateway_app.openai_responses.write import ResponseWriter
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway_app.backend.exchange import Exchange
    from gateway_app.backend.responses import ResponseReader
    from gateway_app.openai_responses.output import JsonObject
    from gateway_app.openai_responses.read import ResponsesRequest
    from gateway_app.types.client_turn import ClientTurn
    from gateway_app.types.stored_response import StoredResponse

TRANSPORT: Final = "responses"
REFERENCES: Final = 50
"""The most responses to which one request may refer."""
REFERENCED_BYTES: Final = uamp.DEFAULT_LIMITS.messages_bytes
"""The maximum bytes of the items referred to."""
READ_BYTES: Final = 8 * REFERENCED_BYTES
"""The maximum bytes of the responses that are read to resolve references."""
_RESPONSE_ID: Final = re.compile(r"resp_[0-9a-f]{32}")
_STATUSES: Final = {"queued": "queued", "in_progress": "in_progress", "waiting": "in_progress"}


class ResponsesService:
    """The responses that one caller got over this protocol, from one agent or from all.

    Methods are called from the request's task, and raise RemoteProtocolError.
    """

    def __init__(self, reader: ResponseReader, agent: str) -> None:
        self._agent = agent
        self._reader = reader

    async def turn(
        self, body: ResponsesRequest, chat: str | None, *, default_chat: str | None = None
    ) -> ClientTurn:
        """Return the turn of a request, with the items that it refers to.

        A turn without `chat` or previous response goes to `default_chat`, as does one that
        continues a response of that chat. An agent that is asked in a conversation of this API
        joins it.
        """
        previous = None
        if body.previous_response_id is not None:
            previous = await self._stored(body.previous_response_id)
            if previous is None:
                raise RemoteProtocolError(
                    ErrorCode.INVALID_EVENT,
                    f"Previous response with id {body.previous_response_id!r} not found.",
                    details={
                        "param": "previous_response_id",
                        "openai_code": "previous_response_not_found",
                    },
                )
            if chat is None and previous.chat_id == default_chat and previous.conversation is None:
                if not self._agent and not body.model:
                    body = msgspec.structs.replace(body, model=previous.agent)
                chat, previous = default_chat, None
        else:
            chat = chat or default_chat
        turn = turn_of(
            msgspec.structs.replace(body, input=await self._resolved(body.items)),
            agent=self._agent or None,
            chat=chat,
            previous=previous,
            is_visitor=self._reader.is_visitor,
        )
        if chat is not None and turn.session.agent and not self._reader.is_visitor:
            await self._reader.conversations.take_in(chat, turn.session.agent)
        return turn

    async def writer_of_started(self, response_id: str) -> ResponseWriter:
        """Return the writer of a response that has just begun, or was found already begun."""
        stored = await self._reader.find(response_id)
        if stored is None:
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_SESSION, "The response was deleted with its chat."
            )
        return self.writer_of_stored(stored)

    async def find(self, response_id: str) -> StoredResponse:
        """Return one of the caller's responses in its current state."""
        stored = await self._stored(response_id)
        if stored is None:
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_SESSION, f"Response with id {response_id!r} not found."
            )
        return stored

    def writer_of_stored(self, stored: StoredResponse, *, after: int = -1) -> ResponseWriter:
        """Return the writer of an earlier response."""
        return ResponseWriter(
            response_id=stored.id,
            created_at=int(stored.created_at.timestamp()),
            link=self._reader.link_in(stored.chat_id),
            echoed_request=request_echo(stored.request, stored.extension),
            tools=ClientTools(stored.extension.get("tools")),
            after=after,
        )

    async def response_object(self, stored: StoredResponse) -> JsonObject:
        """Return the response object of a stored response."""
        writer = self.writer_of_stored(stored)
        if not stored.has_ended:
            return writer.so_far(_STATUSES[stored.status], stored.output)
        return writer.whole(await self.end_of(stored), stored.output)

    async def end_of(self, stored: StoredResponse) -> Any:
        """Return the event that ended a response."""
        end = await self._reader.end_of(stored)
        if end is None:
            raise RemoteProtocolError(
                ErrorCode.UNKNOWN_SESSION, f"The text of {stored.id!r} is no longer stored."
            )
        return end

    async def cancel(self, exchange: Exchange, response_id: str) -> StoredResponse:
        """Cancel a response, in whichever process it runs, unless it has ended."""
        stored = await self.find(response_id)
        if stored.has_ended:
            return stored
        try:
            return await self._reader.cancel(exchange, response_id) or stored
        except RemoteProtocolError:
            stored = await self.find(response_id)
            if not stored.has_ended:
                raise
            return stored

    def input_items(self, stored: StoredResponse) -> list[JsonObject]:
        """Return the input items of a response, oldest first."""
        return input_items(stored, self._reader.link_in(stored.chat_id))

    @property
    def owner(self) -> str:
        """The caller, as the owner of summaries: all visitors are one."""
        return "" if self._reader.is_visitor else self._reader.principal.key

    async def questions(self, body: ResponsesRequest) -> list[JsonObject]:
        """Return the user's messages of a request and of the response that it continues."""
        before: list[JsonObject] = []
        if body.previous_response_id is not None:
            previous = await self._stored(body.previous_response_id)
            before = [] if previous is None else self.input_items(previous)
        earlier = [item for item in before if item.get("role") == "user"]
        return [*earlier, *messages_of_user(body.items)]

    async def _stored(self, response_id: str) -> StoredResponse | None:
        """Return a response that its client asked to store; None for any other."""
        if not _RESPONSE_ID.fullmatch(response_id):
            return None
        stored = await self._reader.find(response_id)
        return stored if stored is not None and stored.extension.get("store") else None

    async def _resolved(self, items: Iterable[InputItem]) -> tuple[InputItem, ...]:
        """Replace references and summaries by the items and messages that they stand for.

        Each response that is read counts as an event.
        """
        items = tuple(items)
        named = {item.id or "" for item in items if item.kind == "item_reference"}
        responses = {response_of(id_) for id_ in named}
        if len(responses) > REFERENCES:
            raise refused(
                "input", f"The referenced items may come from at most {REFERENCES} responses."
            )
        if responses:
            await self._reader.count_reads(len(responses))
        read_bytes = 0
        items_by_id: dict[str, InputItem] = {}
        sizes: dict[str, int] = {}
        for response_id in responses:
            stored = await self._stored(response_id)
            output = [] if stored is None else (await self.response_object(stored))["output"]
            meant = {item["id"]: item for item in output if item["id"] in named}
            items_by_id |= {id_: msgspec.convert(item, InputItem) for id_, item in meant.items()}
            sizes |= {id_: len(msgspec.json.encode(item)) for id_, item in meant.items()}
            # Checked before the next response is read. An item counts once for each reference to
            # it.
            if sum(sizes.get(item.id or "", 0) for item in items) > REFERENCED_BYTES:
                raise refused(
                    "input",
                    f"The referenced items may have at most {REFERENCED_BYTES} bytes.",
                    ErrorCode.EVENT_TOO_LARGE,
                )
            if stored is not None:
                read_bytes += len(
                    msgspec.json.encode((stored.request, stored.question, stored.output))
                )
            if read_bytes > READ_BYTES:
                raise refused(
                    "input",
                    "The responses of the referenced items may have at most"
                    f" {READ_BYTES} bytes together. Send the items instead.",
                    ErrorCode.EVENT_TOO_LARGE,
                )
        return tuple(
            items_by_id.get(item.id or "", item)
            if item.kind == "item_reference"
            else opened(item, owner=self.owner)
            for item in items
        )
