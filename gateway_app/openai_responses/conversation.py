"""Conversations of OpenAI's API: their requests, and messages of a chat as their items."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec

import uamp
from gateway_app.openai.errors import unsupported
from gateway_app.openai.request import inputs_of
from gateway_app.openai_responses.items import InputItem, messages_of
from gateway_app.openai_responses.output import items_of, response_of
from gateway_app.openai_responses.read import Metadata
from gateway_app.openai_responses.write import ResponseWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gateway_app.openai_responses.output import JsonObject
    from uamp import ChatMessage
    from uamp.events import InputEvent

ITEMS: Final = 20
"""The most items that one request adds."""
_Items: TypeAlias = Annotated[tuple[InputItem, ...], msgspec.Meta(max_length=ITEMS)]
_OF_ANSWER: Final = re.compile(r"(?:msg|rs|fc|ctc)_[0-9a-f]{32}_[0-9]{1,6}")


class NewConversation(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /conversations`."""

    items: _Items | None = None
    metadata: Metadata | None = None


class ConversationChange(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /conversations/{id}`."""

    metadata: Metadata | None


class NewItems(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /conversations/{id}/items`."""

    items: _Items


def added_messages(items: Sequence[InputItem]) -> list[tuple[InputEvent, ...]]:
    """Return the inputs of the messages that items add to a chat.

    Raises RemoteProtocolError for anything but messages of the user: a chat's log has what its
    members wrote.
    """
    for index, item in enumerate(items):
        if item.kind != "message" or item.role != "user":
            raise unsupported(
                f"items[{index}]",
                "A conversation takes messages of the user. Agents write their answers themselves,"
                " and instructions are part of a response.",
            )
    messages, _ = messages_of(items, place="items")
    return [inputs_of(message) for message in messages]


def response_in(item_id: str) -> str:
    """Return the response whose answer has an item; '' for an item that is a message itself."""
    return response_of(item_id) if _OF_ANSWER.fullmatch(item_id) else ""


def listed_items(message: ChatMessage, link: Callable[[str], str]) -> list[JsonObject]:
    """Return the items of a message in order.

    Those of an answer have the ids that its response gives them.
    """
    items = message.content_items or (uamp.TextContent(text=message.content),)
    if message.sender_kind == "agent" and message.response_id:
        writer = ResponseWriter(
            response_id=message.response_id, created_at=0, link=link, echoed_request={}
        )
        return writer.items(items, "completed" if message.status is None else "incomplete")
    role: Any = message.role
    return list(items_of(uamp.Message(role=role, content_items=items), message.id, link))
