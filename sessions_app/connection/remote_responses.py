"""Responses of an HTTP exchange that run in other processes, and their requests to the client.

The chat's group delivers their requests and accepted payments. Both are also stored in rows, which
the exchange reads; each is sent only once.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from sessions_app.frames import TERMINAL

# The beginnings of frames that are also stored in rows.
_STORED_PREFIXES: Final = (
    '{"type":"tool.call"',
    '{"type":"tool.approval_required"',
    '{"type":"payment.required"',
    '{"type":"payment.accepted"',
)


class _StoredFrame(msgspec.Struct):
    type: str
    call_id: str = ""
    payment_id: str = ""
    response_id: str = ""


class RemoteResponses:
    """The ids of the responses, and the stored frames that the client has received.

    The exchange's own tasks change it, and the reader of the layer's groups calls `admit`; all run
    on the process's loop.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self._received: set[tuple[str, str]] = set()

    def admit(self, message: dict[str, Any]) -> bool:
        """Record a layer message; return whether to send it to the client."""
        if message["type"] == "chat.event" and message["event"] in TERMINAL:
            self.ids.discard(message["response"])
        if message["type"] == "chat.signal" and self.ids:
            text: str = message["frame"]
            return not text.startswith(_STORED_PREFIXES) or self.is_new(text)
        return True

    def is_new(self, text: str) -> bool:
        """Return whether a stored frame is new to the client, and remember it."""
        stored = msgspec.json.decode(text, type=_StoredFrame)
        key = (stored.type, stored.call_id or stored.payment_id or stored.response_id)
        is_new = key not in self._received
        self._received.add(key)
        return is_new
