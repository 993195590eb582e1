"""A receiver of the states of a response, as the clients of foreign protocols name one."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhookReceiver:
    """A receiver under its client's `name`.

    It knows the sender by a `token`, or by `credentials` of a `scheme` of HTTP; '' is none.
    """

    name: str
    url: str
    token: str = field(default="", repr=False)
    scheme: str = ""
    credentials: str = field(default="", repr=False)
