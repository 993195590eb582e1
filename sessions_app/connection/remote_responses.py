"""Responses of an HTTP exchange's sessions that other processes run, and what they ask for.

The chat's group sends what they ask the client for, and the rows keep it: each is sent once.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from sessions_app.frames import TERMINAL

# How a frame begins that asks a client for something.
_ASKING: Final = (
    '{"type":"tool.call"',
    '{"type":"tool.approval_required"',
    '{"type":"payment.required"',
)


class _Request(msgspec.Struct):
    type: str
    call_id: str = ""
    response_id: str = ""


class RemoteResponses:
    """The ids of the responses, and the requests that the client has received.

    The exchange's own tasks change it, and the reader of the layer's groups calls `admit`; all run
    on the process's loop.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self._requests: set[tuple[str, str]] = set()

    def admit(self, message: dict[str, Any]) -> bool:
        """Take note of a layer message; return whether the client is sent it."""
        if message["type"] == "chat.event" and message["event"] in TERMINAL:
            self.ids.discard(message["response"])
        if message["type"] == "chat.signal" and self.ids:
            text: str = message["frame"]
            return not text.startswith(_ASKING) or self.is_new_request(text)
        return True

    def is_new_request(self, text: str) -> bool:
        """Return whether a frame asks for what the client was not asked for before."""
        request = msgspec.json.decode(text, type=_Request)
        key = (request.type, request.call_id or request.response_id)
        is_new = key not in self._requests
        self._requests.add(key)
        return is_new
