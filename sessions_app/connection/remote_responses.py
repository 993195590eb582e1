"""Responses of an HTTP exchange's sessions that other processes run, and what they ask for.

The chat's group sends what they ask the client for, and that a payment was accepted. The rows keep
both, and the exchange reads them too: each is sent once.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from sessions_app.frames import TERMINAL

# How a frame begins that a row keeps too.
_KEPT: Final = (
    '{"type":"tool.call"',
    '{"type":"tool.approval_required"',
    '{"type":"payment.required"',
    '{"type":"payment.accepted"',
)


class _KeptFrame(msgspec.Struct):
    type: str
    call_id: str = ""
    payment_id: str = ""
    response_id: str = ""


class RemoteResponses:
    """The ids of the responses, and the kept frames that the client has received.

    The exchange's own tasks change it, and the reader of the layer's groups calls `admit`; all run
    on the process's loop.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self._received: set[tuple[str, str]] = set()

    def admit(self, message: dict[str, Any]) -> bool:
        """Take note of a layer message; return whether the client is sent it."""
        if message["type"] == "chat.event" and message["event"] in TERMINAL:
            self.ids.discard(message["response"])
        if message["type"] == "chat.signal" and self.ids:
            text: str = message["frame"]
            return not text.startswith(_KEPT) or self.is_new(text)
        return True

    def is_new(self, text: str) -> bool:
        """Return whether the client has not received a frame yet that a row keeps."""
        kept = msgspec.json.decode(text, type=_KeptFrame)
        key = (kept.type, kept.call_id or kept.payment_id or kept.response_id)
        is_new = key not in self._received
        self._received.add(key)
        return is_new
