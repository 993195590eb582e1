"""Webhooks of the caller's own responses, for protocols whose clients name an address.

Callers of this module have checked that the response belongs to the client. The scopes are those of
webhooks; each function raises RemoteProtocolError forbidden for a credential without them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gateway_app.types.webhook_receiver import WebhookReceiver
from sessions_app import database
from sessions_app.access.protocol_rights import check_scope
from sessions_app.webhooks import receivers
from sessions_app.webhooks.formats import ChangedResponse, WebhookFormat, register
from sessions_app.webhooks.receivers import Receiver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.access.principal import Principal

__all__ = [
    "ChangedResponse",
    "WebhookFormat",
    "check",
    "delete_receiver",
    "find_receiver",
    "list_receivers",
    "register",
    "set_receiver",
]


def check(url: str, *, principal: Principal) -> None:
    """Raise RemoteProtocolError if a caller may not set a webhook, or not with this address."""
    check_scope(principal, "webhooks:write")
    receivers.check(url)


async def set_receiver(
    response_id: str,
    receiver: WebhookReceiver,
    *,
    principal: Principal,
    webhook_format: str,
    origin: str,
    from_beginning: bool,
) -> None:
    """Set a webhook; see `sessions_app.webhooks.receivers.set_receiver`."""
    check_scope(principal, "webhooks:write")
    write = partial(
        receivers.set_receiver,
        response_id,
        Receiver(
            name=receiver.name,
            url=receiver.url,
            token=receiver.token,
            scheme=receiver.scheme,
            credentials=receiver.credentials,
        ),
        principal=principal,
        webhook_format=webhook_format,
        origin=origin,
        from_beginning=from_beginning,
    )
    await database.run(write)


async def list_receivers(response_id: str, *, principal: Principal) -> Sequence[WebhookReceiver]:
    """Return the receivers of a response, in the order in which they were set."""
    check_scope(principal, "webhooks:read")
    return [
        _webhook_receiver(receiver)
        for receiver in await database.run(receivers.list_receivers, response_id)
    ]


async def find_receiver(
    response_id: str, name: str, *, principal: Principal
) -> WebhookReceiver | None:
    """Return the receiver of this name."""
    check_scope(principal, "webhooks:read")
    receiver = await database.run(receivers.find_receiver, response_id, name)
    return None if receiver is None else _webhook_receiver(receiver)


async def delete_receiver(response_id: str, name: str, *, principal: Principal) -> None:
    """Delete the receiver of this name, if any."""
    check_scope(principal, "webhooks:write")
    await database.run(receivers.delete_receiver, response_id, name)


def _webhook_receiver(receiver: Receiver) -> WebhookReceiver:
    """Return a receiver without its credentials, which are write-only."""
    return WebhookReceiver(
        name=receiver.name, url=receiver.url, token=receiver.token, scheme=receiver.scheme
    )
