"""Compaction: a summary that stands for a conversation (`POST /responses/compact`).

The agent writes the summary as its answer to one more message of the user, so it costs as much as
an answer. The item with the summary is encrypted, because clients treat it as opaque.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
from cryptography.fernet import InvalidToken

import uamp
from gateway_app.openai.errors import refused, unsupported
from gateway_app.openai_responses.items import InputItem
from gateway_app.openai_responses.output import item_id, usage_of
from gateway_app.openai_responses.read import ResponsesRequest
from signing_app.encryption import cipher
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.fernet import MultiFernet

    from gateway_app.openai_responses.output import JsonObject

KIND: Final = "compaction"
_PURPOSE: Final = "openai_responses.compaction"
_REQUEST: Final = (
    "Summarise our conversation so far for someone who continues it without having read it: what I"
    " want, what was decided and done, the facts, names and numbers that matter, and what is still"
    " open. Write only the summary."
)
_INTRODUCTION: Final = "A summary stands for the conversation up to here:\n\n"


def summary_request(body: ResponsesRequest, *, chat: str | None) -> ResponsesRequest:
    """Return the request that asks for a summary; raises RemoteProtocolError for a chat."""
    if chat is not None:
        raise unsupported(
            "conversation", "A chat keeps its conversation whole. Leave it and X-Chat-Id out."
        )
    return ResponsesRequest(
        model=body.model,
        instructions=body.instructions,
        previous_response_id=body.previous_response_id,
        input=(*body.items, InputItem(role="user", content=_REQUEST)),
        store=False,
    )


def compacted(
    response_id: str,
    end: ev.ResponseDone | ev.ResponseCancelled,
    *,
    questions: Iterable[JsonObject],
    owner: str,
) -> JsonObject:
    """Return the object with the user's messages and the summary, which together are an input.

    Only requests of the same `owner` can use the summary; "" for all visitors.

    Raises RemoteProtocolError if the agent wrote no summary to its end.
    """
    output = end.response if isinstance(end, ev.ResponseDone) else None
    if output is None:
        raise RemoteProtocolError(ErrorCode.INTERRUPTED, "The summary was cancelled.")
    summary = uamp.text_of(output.output)
    if not summary.strip():
        raise RemoteProtocolError(ErrorCode.PROVIDER_ERROR, "The agent wrote no summary.")
    sealed = _cipher(owner).encrypt(summary.encode()).decode()
    item = {"id": item_id(KIND, response_id, 0), "type": KIND, "encrypted_content": sealed}
    return {
        "id": response_id,
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [*questions, item],
        "usage": usage_of(output.usage),
    }


def messages_of_user(items: Iterable[InputItem]) -> list[JsonObject]:
    """Return the user's messages of an input as they were sent."""
    messages = [item for item in items if item.kind == "message" and item.role in {None, "user"}]
    return [
        {
            "id": item.id or f"msg_{number:03}",
            "type": "message",
            "status": "completed",
            "role": "user",
            "content": _parts(item),
        }
        for number, item in enumerate(messages)
    ]


def opened(item: InputItem, *, owner: str) -> InputItem:
    """Return an item as its message if it is a compaction; raises RemoteProtocolError for others'.

    Items of other kinds are returned as they are.
    """
    if item.kind != KIND:
        return item
    try:
        summary = _cipher(owner).decrypt((item.encrypted_content or "").encode()).decode()
    except InvalidToken:
        raise refused(
            "input", "A compaction item was not made here for you, or was changed."
        ) from None
    return InputItem(role="user", content=f"{_INTRODUCTION}{summary}")


def _cipher(owner: str) -> MultiFernet:
    return cipher(f"{_PURPOSE}:{owner}")


def _parts(item: InputItem) -> list[Any]:
    if isinstance(item.content, str):
        return [{"type": "input_text", "text": item.content}]
    parts = [msgspec.to_builtins(part) for part in item.content or ()]
    return [{name: value for name, value in part.items() if value is not None} for part in parts]
