"""`/conversations`: chats as conversations of OpenAI's API."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
from django.http import HttpResponse

import uamp
from gateway_app.backend.conversations import Conversations
from gateway_app.backend.exchange import Exchange
from gateway_app.http import dialect_view, read_body, read_query
from gateway_app.openai.refusals import refusal
from gateway_app.openai_responses.conversation import (
    ConversationChange,
    NewConversation,
    NewItems,
    added_messages,
    listed_items,
    response_in,
)
from gateway_app.openai_responses.service import TRANSPORT
from gateway_app.openai_responses.views import InputItemsQuery
from gateway_app.types.client_turn import ClientTurn
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from gateway_app.backend.conversations import StoredConversation
    from gateway_app.openai_responses.output import JsonObject
    from uamp.events import InputEvent

_THREAD = "items"


@dialect_view(refusal, "POST", protocol=TRANSPORT, takes_visitors=False)
async def conversations(request: HttpRequest, name: str = "") -> HttpResponse:
    """Create a conversation; below an agent, this agent is in it."""
    body = read_body(request, NewConversation) if request.body else NewConversation()
    messages = added_messages(body.items or ())
    exchange = await Exchange.of(request, TRANSPORT, events=max(1, len(messages)))
    try:
        chats = _of(request, exchange)
        made = await chats.create(body.metadata or {}, agent=name, key=_key(request))
        if messages:
            await _add(exchange, made.id, messages)
    finally:
        await exchange.close()
    return _json(_conversation_object(made))


@dialect_view(refusal, "GET", "HEAD", "POST", "DELETE", protocol=TRANSPORT, takes_visitors=False)
async def conversation(request: HttpRequest, conversation_id: str, name: str = "") -> HttpResponse:
    """Return a conversation, replace its metadata, or delete it."""
    del name
    exchange = await Exchange.of(request, TRANSPORT)
    try:
        chats = _of(request, exchange)
        if request.method == "DELETE":
            await chats.delete(conversation_id)
            deleted = {"id": conversation_id, "object": "conversation.deleted", "deleted": True}
            return _json(deleted)
        if request.method == "POST":
            # The answer shows the chat, so a key that may not read it changes nothing.
            await chats.find(conversation_id)
            body = read_body(request, ConversationChange)
            await chats.set_metadata(conversation_id, body.metadata or {})
        return _json(_conversation_object(await chats.find(conversation_id)))
    finally:
        await exchange.close()


@dialect_view(refusal, "GET", "HEAD", "POST", protocol=TRANSPORT, takes_visitors=False)
async def items(request: HttpRequest, conversation_id: str, name: str = "") -> HttpResponse:
    """Return a page of a conversation's items, or add messages without asking an agent."""
    del name
    messages: list[tuple[InputEvent, ...]] = []
    if request.method == "POST":
        messages = added_messages(read_body(request, NewItems).items)
    exchange = await Exchange.of(request, TRANSPORT, events=max(1, len(messages)))
    try:
        chats = _of(request, exchange)
        await chats.find(conversation_id)
        if request.method == "POST":
            added = await _add(exchange, conversation_id, messages)
            objects = [await _item(chats, conversation_id, item_id) for item_id in added]
            return _json(_page(objects, has_more=False))
        query = read_query(request, InputItemsQuery)
        start = await _message_of(chats, conversation_id, query.after)
        if query.after and not start:
            raise _no_item(query.after)
        rows = await chats.messages(
            conversation_id,
            start,
            is_descending=query.order == "desc",
            limit=query.limit + 2,
        )
    finally:
        await exchange.close()
    link = chats.link_in(conversation_id)
    all_items: list[JsonObject] = []
    for row in rows:
        of_row = listed_items(row, link)
        all_items += reversed(of_row) if query.order == "desc" else of_row
    ids = [item["id"] for item in all_items]
    if query.after and query.after not in ids:
        raise _no_item(query.after)
    rest = all_items[ids.index(query.after) + 1 :] if query.after else all_items
    return _json(_page(rest[: query.limit], has_more=len(rest) > query.limit))


@dialect_view(refusal, "GET", "HEAD", "DELETE", protocol=TRANSPORT, takes_visitors=False)
async def item(
    request: HttpRequest, conversation_id: str, item_id: str, name: str = ""
) -> HttpResponse:
    """Return an item, or delete the message that it belongs to."""
    del name
    exchange = await Exchange.of(request, TRANSPORT)
    try:
        chats = _of(request, exchange)
        if request.method != "DELETE":
            return _json(await _item(chats, conversation_id, item_id))
        await chats.find(conversation_id)
        message_id = await _message_of(chats, conversation_id, item_id)
        await chats.delete_message(conversation_id, message_id)
        return _json(_conversation_object(await chats.find(conversation_id)))
    finally:
        await exchange.close()


def _of(request: HttpRequest, exchange: Exchange) -> Conversations:
    return Conversations(exchange.principal, request.build_absolute_uri())


async def _add(
    exchange: Exchange, conversation_id: str, messages: Sequence[Sequence[InputEvent]]
) -> list[str]:
    turn = ClientTurn(
        session=uamp.SessionCreate(chat=conversation_id),
        response=uamp.ResponseCreate(),
        thread=_THREAD,
    )
    return await exchange.add(turn, messages)


async def _message_of(chats: Conversations, conversation_id: str, item_id: str) -> str:
    """Return the id of the message that an item belongs to; '' if there is none."""
    response_id = response_in(item_id)
    if not response_id:
        return item_id
    return await chats.message_of_response(conversation_id, response_id)


async def _item(chats: Conversations, conversation_id: str, item_id: str) -> JsonObject:
    message_id = await _message_of(chats, conversation_id, item_id)
    rows = (
        await chats.messages(conversation_id, message_id, is_descending=False, limit=1)
        if message_id
        else ()
    )
    link = chats.link_in(conversation_id)
    matches = [item for row in rows for item in listed_items(row, link) if item["id"] == item_id]
    if not matches:
        raise _no_item(item_id)
    return matches[0]


def _key(request: HttpRequest) -> str:
    """Return the identity of a repeatable request: its key and its body."""
    key = request.headers.get("Idempotency-Key", "")
    return f"{key}:{hashlib.sha256(request.body).hexdigest()}" if key else ""


def _conversation_object(stored: StoredConversation) -> JsonObject:
    return {
        "id": stored.id,
        "object": "conversation",
        "created_at": stored.created_at,
        "metadata": stored.metadata,
    }


def _page(page: Sequence[JsonObject], *, has_more: bool) -> JsonObject:
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": has_more,
    }


def _no_item(item_id: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        ErrorCode.MESSAGE_NOT_FOUND, f"The conversation has no item with id {item_id!r}."
    )


def _json(value: JsonObject) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(value), content_type="application/json")
