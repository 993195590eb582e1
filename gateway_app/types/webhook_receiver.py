"""A receiver of a response's state changes, as the clients of foreign protocols define it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookReceiver:
    """A receiver, under the `name` that its client chose.

    It authenticates the sender by a `token`, or by `credentials` of an HTTP `scheme`; '' is none.
    """

    name: str
    url: str
    token: str = field(default="", repr=False)
    scheme: str = ""
    credentials: str = field(default="", repr=False)
