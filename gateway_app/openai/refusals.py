"""Refusals of OpenAI's HTTP dialects: errors, demands for payment and blocked answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

import uamp
from gateway_app.http import json_refusal
from gateway_app.openai.errors import error_body, failed
from gateway_app.types.appended_text import AppendedText
from uamp import RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

    from gateway_app.backend.exchange import Exchange


def refusal(request: HttpRequest, error: RemoteProtocolError) -> HttpResponse:
    """Return an error in OpenAI's format."""
    del request
    return json_refusal(error_body(error), error)


def demand(body: Mapping[str, Any]) -> bytes:
    """Encode the body of a 402: x402's fields, plus those that WebAgents' transports print."""
    return msgspec.json.encode({**body, "error": "Payment required", "status_code": 402})


async def whole_answer(exchange: Exchange) -> ev.ResponseDone | ev.ResponseCancelled:
    """Wait for an answer that is not streamed, and return its end.

    Raises RemoteProtocolError if it failed or is blocked. What it said until then, and its calls of
    the client's tools, were charged, so the error's details have them as `partial_text` and
    `partial_calls`, for the client that has received nothing.
    """
    text_so_far, calls, end = AppendedText(), dict[str, dict[str, str]](), None
    async for events in exchange.events():
        for end in events:
            match end:
                case ev.ResponseDelta(delta=ev.Delta(type="text", text=str(text))):
                    text_so_far.replace(text, end.offset)
                case ev.ToolCall(call_id=call_id, name=name, arguments=arguments):
                    calls[call_id] = {"id": call_id, "name": name, "arguments": arguments}
    match end:
        case ev.ResponseDone() | ev.ResponseCancelled():
            return end
        case ev.ResponseError():
            error = failed(end.error)
            text = uamp.text_of(end.partial_output or ()) or text_so_far.text
        case _:
            error, text = await exchange.give_up(), text_so_far.text
    details = dict(error.details or {})
    if text or calls:
        details["response_id"] = exchange.response_id
    if text:
        details["partial_text"] = text
    if calls:
        details["partial_calls"] = list(calls.values())
    raise RemoteProtocolError(error.code, error.message, details=details or None)
